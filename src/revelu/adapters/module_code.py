"""What decides a torch module's answers besides its tensors: its code, and its plain attributes."""

import argparse
import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["digest_of"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, np.generic)

# Other objects, such as loggers, may change from process to process: they are told by their class.
_RECORDS = (types.SimpleNamespace, argparse.Namespace)

# Attributes of every module: its tensors are told by their names, and its parts one by one.
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
# Addresses, numbers of names that are there twice, and places of the source, in a program's text.
_OF_A_PROCESS = re.compile(r"0x[0-9a-f]+|___torch_mangle_\d+\.|\s+#.*")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def digest_of(module: Any) -> str:
    """Return the SHA-256 of all that decides a module's answers, the same in every process.

    Parameters
    ----------
    module : torch.nn.Module
    """
    digest = hashlib.sha256()
    for word in _words(module, ()):
        digest.update(f"{len(word)} ".encode() + word)
    return digest.hexdigest()


def _words(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    """What tells a value from others, whatever the process; a cycle ends where it closes.

    Addresses, which differ between processes, are no part of it.

    Parameters
    ----------
    around : tuple of int
        Identities of the values that it is part of.
    """
    kind = type(value)
    yield kind.__qualname__.encode()
    if isinstance(value, _PLAIN):
        yield repr(value).encode()
        return
    if isinstance(value, torch.Tensor):
        yield f"{tuple(value.shape)} {value.dtype}".encode()
        flat = value.detach().cpu().contiguous().reshape(-1)
        yield flat.view(torch.uint8).numpy().tobytes()
        return
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.shape} {value.dtype}".encode() + value.tobytes()
        return
    if id(value) in around:
        return
    around = (*around, id(value))
    if isinstance(value, set | frozenset):  # in an order that is not the hashes'
        yield from sorted(b" ".join(_words(one, around)) for one in value)
        return
    for part in _parts(value):
        yield from _words(part, around)


def _parts(value: Any) -> Iterator[Any]:
    """What a value consists of."""
    if isinstance(value, torch.jit.ScriptModule):
        yield {**value.state_dict(), **dict(value.named_buffers())}
        yield _dumped(value)
    elif isinstance(value, nn.Module):
        yield repr(value)
        # Some buffers are no part of the state dict.
        yield {**value.state_dict(), **dict(value.named_buffers())}
        yield from _code_of(type(value))
        own = {name: one for name, one in vars(value).items() if name not in _OF_EVERY_MODULE}
        yield own
        yield [[*getattr(value, hooks).values()] for hooks in _HOOKS]
        yield [*value.children()]
        if isinstance(value, torch.fx.GraphModule):
            yield value.code
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, types.FunctionType):
        yield from (value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_full(cell))
        yield from _globals_of(value)
    elif isinstance(value, types.CodeType):
        yield from (value.co_code, value.co_consts, value.co_names)
    elif isinstance(value, types.MethodType):
        yield value.__func__
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, type | types.BuiltinFunctionType | types.ModuleType):
        yield value.__name__
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        yield {name: getattr(value, name, None) for name in names}
    elif isinstance(value, _RECORDS):
        yield {**vars(value)}


def _code_of(kind: type) -> Iterator[Any]:
    """Functions and plain values of a class, and of those above it but torch's own."""
    for one in kind.__mro__:
        if one is object or one.__module__.partition(".")[0] == "torch":
            continue
        for name, value in sorted(vars(one).items()):
            inner = getattr(value, "fget", getattr(value, "__func__", value))
            is_code = isinstance(inner, types.FunctionType)
            if is_code or (isinstance(inner, _PLAIN) and not name.startswith("__")):
                yield name
                yield inner


def _globals_of(function: types.FunctionType) -> Iterator[Any]:
    """Numbers, tensors and functions of its own file that a function names."""
    known = (*_PLAIN, torch.Tensor, np.ndarray, list, tuple, dict)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        is_near = getattr(value, "__module__", None) == function.__module__
        if isinstance(value, known) or (isinstance(value, types.FunctionType) and is_near):
            yield name
            yield value


def _is_full(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _dumped(script: Any) -> str:
    """Code and attributes of a TorchScript program in words, without what a process adds."""
    return _OF_A_PROCESS.sub("", script._c.dump_to_str(True, True, False))  # noqa: SLF001
