"""Rules and layers that rarely fire: what the methods of recover.rare say, checked and certified.

Only this package knows of targets, files and statuses; ``upper_part`` goes on above a layer.
"""
