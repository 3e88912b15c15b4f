"""Pickles, followed without being run: plain values, records, and names that are never looked up.

Unpickling imports what a pickle names and calls it; so does, within limits, a restricted
unpickler.  Here the instructions of every protocol are followed by a machine of our own.  Of what a
pickle names it knows a closed list, and makes records of it; any other name ends the reading.
"""

import codecs
import io
import pickletools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from revelu.errors import DamagedError, FormatError, HostileError, UntrustedError

__all__ = ["Machine", "Name", "Record"]

_OPCODES = {opcode.code.encode("latin-1"): opcode for opcode in pickletools.opcodes}
_PUSHED = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict, "EMPTY_SET": set}
_PASSED = {"PROTO", "FRAME"}

# What runs commands or programs, of which no model is made; and what does among the built-ins.
_COMMANDS = {
    *("os", "posix", "nt", "subprocess", "pty", "commands", "popen2", "shutil", "socket"),
    *("sys", "runpy", "importlib", "code", "codeop", "webbrowser", "ctypes"),
}
_EVALUATES = {"eval", "exec", "execfile", "compile", "__import__", "open"}

# What keys may be: of others, as nested tuples, a hash may take for ever.
_KEYS = (str, bytes, int, float, type(None))


class Name(str):
    """A class or a function that a pickle names, ``module name``; never looked up."""

    __slots__ = ()


@dataclass(eq=False)
class Record:
    """An object that a pickle describes.

    Attributes
    ----------
    name : Name
        Its class, or the function that makes it.
    arguments : tuple
        What that is called with.
    state : Any
        What the object is given then: of most classes their attributes by name.
    """

    name: Name
    arguments: tuple[Any, ...] = ()
    state: Any = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The name of its class without its module."""
        return self.name.rpartition(" ")[2]

    def get(self, attribute: str, default: Any = None) -> Any:
        """Return an attribute, or what stands for one that is not there."""
        return self.state.get(attribute, default) if isinstance(self.state, dict) else default


class Machine:
    """Follows the instructions of a pickle; subclasses say what names are known.

    Parameters
    ----------
    path : pathlib.Path
        Begins every message.
    content : bytes
    most_steps : int
        Instructions that are followed: each may make an object of some 300 bytes, and models have
        some thousands.
    most_keys : int
        Keys of dicts and sets that are no text, whose hashes may all be the same.
    """

    def __init__(
        self,
        path: Path,
        content: bytes,
        most_steps: int = 2**20,
        most_keys: int = 10_000,
    ) -> None:
        self.path, self.content = path, content
        self.stream = io.BytesIO(content)
        self.most_steps, self.most_keys = most_steps, most_keys
        # One list may be copied by every few instructions: bytes of all copies together.
        self.most_copied = max(64 * most_steps, 4 * len(content))
        self.n_steps = self.n_keys = self.n_copied = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[object, Any] = {}

    def knows(self, name: Name) -> bool:
        """Whether a name is on the list."""
        raise NotImplementedError

    def called(self, name: Name, arguments: tuple[Any, ...]) -> Any:
        """Return what stands for a call of a name on the list."""
        return Record(name, arguments)

    def built(self, found: Any, state: Any) -> Any:
        """Return what stands for an object that is given its state."""
        if not isinstance(found, Record):
            self.damaged()
        if isinstance(state, tuple) and len(state) == 2:  # with those of slots
            both = [part for part in state if isinstance(part, dict)]
            self.copy(sum(map(len, both)), each=100)
            state = {k: v for part in both for k, v in part.items()} if both else state
        found.state = state
        return found

    def copy(self, n: int, each: int) -> None:
        """Count items of ``each`` bytes that are about to be copied."""
        self.n_copied += n * each
        if self.n_copied > self.most_copied:
            raise FormatError(f"{self.path}: copies more than a pickle of its size has")

    def persistent(self, _: Any) -> Any:
        """Return what an identifier stands for of something outside of the pickle."""
        self.refuse("what is outside of it")

    def refuse(self, name: str) -> NoReturn:
        """Raise of what only running the file would open."""
        module, _, attribute = name.partition(".")
        is_builtin = module in {"builtins", "__builtin__"}
        is_hostile = module in _COMMANDS or (is_builtin and attribute in _EVALUATES)
        raise (HostileError if is_hostile else UntrustedError)(
            f"{self.path}: names {name}, which is not among what revelu reads; nothing was run"
        )

    def damaged(self) -> NoReturn:
        """Raise of what no pickler writes."""
        raise DamagedError(f"{self.path}: a damaged pickle")

    def run(self) -> Any:
        """Return what the pickle describes, from where the stream is to its end.

        Raises
        ------
        FormatError
            If it has no end, or more instructions than are followed.
        UntrustedError
            If it names what is not on the list.
        """
        while byte := self.stream.read(1):
            self.n_steps += 1
            if self.n_steps > self.most_steps:
                raise FormatError(f"{self.path}: over {self.most_steps:,} instructions")
            opcode = _OPCODES.get(byte)
            if opcode is None:
                self.damaged()
            if opcode.name == "STOP":
                return self.stack.pop()
            self._step(opcode.name, self._argument(opcode))
        raise DamagedError(f"{self.path}: a pickle without an end")

    def _argument(self, opcode: Any) -> Any:
        if opcode.name == "STRING":  # bytes of Python 2
            line = self.stream.readline().strip()
            if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in {b"'", b'"'}:
                self.damaged()
            return bytes(codecs.escape_decode(line[1:-1])[0]).decode("latin-1")
        return None if opcode.arg is None else opcode.arg.reader(self.stream)

    def _step(self, name: str, argument: Any) -> None:
        """Follow one instruction."""
        stack = self.stack
        if name in _PUSHED:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in {"PUT", "BINPUT", "LONG_BINPUT"}:
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in {"GET", "BINGET", "LONG_BINGET"}:
            stack.append(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in {"POP", "POP_MARK"}:
            self._pop(name)
        elif name == "DUP":
            stack.append(stack[-1])
        elif name not in _PASSED:
            self._put_together(name, argument)

    def _put_together(self, name: str, argument: Any) -> None:
        """Follow an instruction that makes something of what is on the stack."""
        stack = self.stack
        match name:
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(self._taken(len(stack) - int(name[-1]))))
            case "TUPLE":
                stack.append(tuple(self._taken(self.marks.pop())))
            case "LIST":
                stack.append(self._taken(self.marks.pop()))
            case "FROZENSET":
                items = self._taken(self.marks.pop())
                self._check_keys(items)
                stack.append(frozenset(items))
            case "DICT":
                items = self._taken(self.marks.pop())
                stack.append({})
                self._set(items)
            case "SETITEM":
                self._set(self._taken(len(stack) - 2))
            case "SETITEMS":
                self._set(self._taken(self.marks.pop()))
            case "APPEND":
                self._extend(self._taken(len(stack) - 1))
            case "APPENDS":
                self._extend(self._taken(self.marks.pop()))
            case "ADDITEMS":
                items = self._taken(self.marks.pop())
                if not isinstance(stack[-1], set):
                    self.damaged()
                self._check_keys(items)
                stack[-1].update(items)
            case _:
                self._make(name, argument)

    def _make(self, name: str, argument: Any) -> None:
        """Follow an instruction that names something, or makes an object."""
        stack = self.stack
        match name:
            case "GLOBAL":
                stack.append(self._named(argument))
            case "STACK_GLOBAL":
                module, last = self._taken(len(stack) - 2)
                stack.append(self._named(f"{module} {last}"))
            case "REDUCE" | "NEWOBJ":
                callee, arguments = self._taken(len(stack) - 2)
                stack.append(self._call(callee, arguments))
            case "NEWOBJ_EX":
                callee, arguments, named = self._taken(len(stack) - 3)
                if named:
                    self.refuse("arguments by name")
                stack.append(self._call(callee, arguments))
            case "INST":
                arguments = tuple(self._taken(self.marks.pop()))
                stack.append(self._call(self._named(argument), arguments))
            case "OBJ":
                callee, *rest = self._taken(self.marks.pop())
                stack.append(self._call(callee, tuple(rest)))
            case "BUILD":
                found, state = self._taken(len(stack) - 2)
                stack.append(self.built(found, state))
            case "BINPERSID":
                stack.append(self.persistent(stack.pop()))
            case "PERSID":
                stack.append(self.persistent(argument))
            case _:  # registered by extension, or buffers beside the pickle
                self.refuse(f"what its instruction {name} stands for")

    def _taken(self, start: int) -> list[Any]:
        """Remove what is on the stack from a place on, and return it."""
        lowest = self.marks[-1] if self.marks else 0
        if start < lowest:
            self.damaged()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _pop(self, name: str) -> None:
        if name == "POP_MARK" or (self.marks and self.marks[-1] == len(self.stack)):
            self._taken(self.marks.pop())
        else:
            self.stack.pop()

    def _named(self, text: str) -> Name:
        name = Name(text)
        if not self.knows(name):
            shown = ".".join(text.split())[:80]
            self.refuse(shown if shown.isprintable() else ascii(shown))
        return name

    def _call(self, callee: Any, arguments: Any) -> Any:
        if not isinstance(callee, Name) or not isinstance(arguments, tuple):
            self.damaged()
        return self.called(callee, arguments)

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            self.damaged()
        self._check_keys(items[::2])
        target.update(zip(items[::2], items[1::2], strict=True))

    def _extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            self.damaged()
        self.stack[-1].extend(items)

    def _check_keys(self, keys: list[Any]) -> None:
        if not all(isinstance(key, _KEYS) for key in keys):
            self.damaged()
        # A large number is hashed anew each time.
        if any(isinstance(key, int) and key.bit_length() > 64 for key in keys):
            self.damaged()
        self.n_keys += sum(not isinstance(key, str) for key in keys)
        if self.n_keys > self.most_keys:
            raise FormatError(f"{self.path}: over {self.most_keys:,} keys that are no text")
