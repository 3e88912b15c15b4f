"""Pickles that were made to do harm, each refused in a line: code, memory, time, lies."""

import bz2
import io
import lzma
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from old_pickles import RELEASES, dumps, recorded

_GIB = 2**30


def hostile(model: Any, *, bombs: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of hostile files.

    Parameters
    ----------
    model : MLPRegressor
        A fitted one, of which some are made.
    bombs : bool
        Those, too, that unpack to much.
    """
    genuine = pickle.dumps(model, 2)
    system = b"cos\nsystem\n(S'touch revelu-was-run'\ntR"
    yield "os.system by REDUCE", b"\x80\x02" + system + b"."
    yield "posix.system by INST", b"(S'touch revelu-was-run'\niposix\nsystem\n."
    yield "eval by STACK_GLOBAL", _stack_global("builtins", "eval")
    yield (
        "an attribute of a known class",
        _stack_global("sklearn.neural_network", "MLPClassifier.__init__.__globals__"),
    )
    yield "os.system inside a model", genuine[:-2] + system + b"0" + genuine[-2:]
    yield "numpy.load", b"\x80\x02cnumpy\nload\n(S'x.npy'\ntR."
    yield "a registered extension", b"\x80\x02\x82\x01."
    yield "what lies outside", b"Pmodel\n."
    yield (
        "a memo of two thousand million places",
        b"\x80\x02]r" + struct.pack("<I", 2**31 - 1) + b".",
    )
    yield "bytes that are not there", b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"."
    yield "a bytearray that is not there", b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"."
    yield "an array that is not there", _array(b"(J\0\0\x10\0J\0\0\x10\0t")
    yield "joblib's array that is not there", _wrapped(model, (2**20, 2**20))
    for name, packed in _bombs() if bombs else ():
        yield f"a bomb of {name}", packed
    yield "a list in half a million lists", b"\x80\x02" + b"]" * 500_000 + b"a" * 499_999 + b"."
    yield "a key of tuples of tuples", b"\x80\x02}(" + b")" + b"2\x86" * 60 + b"K\x01u."
    yield "a million sets", b"\x80\x04" + b"\x8f" * (2**20 + 10) + b"."
    yield (
        "one array ten thousand times",
        _with(
            model,
            coefs_=[np.zeros((400, 400))] * 10_000,
            intercepts_=[np.zeros(400)] * 10_000,
            n_features_in_=400,
        ),
    )
    yield (
        "more columns than a file has bytes",
        _with(model, coefs_=[np.zeros((0, 3))], n_features_in_=2**40),
    )
    many = b"".join(
        b"\x8a\x0b" + (k * (2**61 - 1)).to_bytes(11, "little") + b"N" for k in range(1, 60_000)
    )
    yield "keys with one hash", b"\x80\x02}(" + many + b"u."
    yield "a pipeline that ends in itself", _endless(model)


def _stack_global(module: str, name: str) -> bytes:
    parts = (b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + b"".join(parts) + b"\x93\x8c\x011\x85R."


def _array(shape: bytes) -> bytes:
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\x01btR"
    dtype = (
        b"cnumpy\ndtype\n(U\x02f8K\0K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    )
    return b"\x80\x02" + made + b"(K\x01" + shape + dtype + b"\x89U\x00tb."


def _wrapped(model: Any, shape: tuple[int, ...]) -> bytes:
    release = RELEASES[3]
    content = dumps(recorded(model, release), release, 3, packed=True)
    true = model.coefs_[0].shape
    old = b"K" + bytes([true[0]]) + b"K" + bytes([true[1]]) + b"\x86"
    new = b"".join(b"J" + struct.pack("<i", n) for n in shape) + b"\x86"
    return content.replace(old, new)


def _bombs() -> Iterator[tuple[str, bytes]]:
    """160 MiB of zeros, packed, behind the beginning of a gibibyte of bytes."""
    packers: dict[str, Callable[[], Any]] = {
        "zlib": lambda: zlib.compressobj(1),
        "gzip": lambda: zlib.compressobj(1, wbits=31),
        "bz2": bz2.BZ2Compressor,
        "xz": lambda: lzma.LZMACompressor(preset=0),
    }
    piece = bytes(2**24)
    for name, make in packers.items():
        packer, out = make(), io.BytesIO()
        out.write(packer.compress(b"\x80\x04\x8e" + struct.pack("<Q", _GIB)))
        for _ in range(10):
            out.write(packer.compress(piece))
        out.write(packer.flush())
        yield name, out.getvalue()


def _with(model: Any, **changed: Any) -> bytes:
    release = RELEASES[3]
    made = recorded(model, release)
    made.__dict__.update(changed)
    return dumps(made, release, 3)


def _endless(model: Any) -> bytes:
    from sklearn.pipeline import Pipeline  # noqa: PLC0415 - of the extra for benchmarks

    release = RELEASES[3]
    made = recorded(Pipeline([("model", model)]), release)
    made.steps = [("again", made)]
    return dumps(made, release, 3)
