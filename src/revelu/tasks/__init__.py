"""The jobs a user asks for: where adapters, methods and verification meet."""
