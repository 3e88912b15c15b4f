"""Samples in Parquet: as arrays in every respect, and damage is named by file, row or column."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_learn import draw, largest_error, samples

import revelu

TRUTH = draw(3, 2, 90)


def table(n=300, seed=1, **changed):
    """Samples of 10 parameters; other columns by name, or none."""
    X, y = samples(TRUTH, n, seed)
    columns = {**{f"x{i}": column for i, column in enumerate(X.T)}, "y": y, **changed}
    return pa.table({name: c for name, c in columns.items() if c is not None})


def test_a_table_reads_as_arrays_do(tmp_path):
    parquet.write_table(table(), tmp_path / "s.parquet", row_group_size=50)
    X, y = samples(TRUTH, 300, 1)
    np.savez(tmp_path / "s.npz", X=X, y=y)
    one, other = (revelu.learn(tmp_path / f"s.{suffix}") for suffix in ("parquet", "npz"))
    assert one.status is revelu.Status.RECOVERED
    assert one.network == other.network
    assert largest_error(one.network, TRUTH) < 1e-9


def test_shards_of_both_kinds_may_mix_and_columns_are_found_by_name(tmp_path):
    parquet.write_table(table(seed=1), tmp_path / "0.parquet")
    parquet.write_table(table(seed=2).select(["x2", "y", "x0", "x1"]), tmp_path / "1.parquet")
    X, y = samples(TRUTH, 300, 3)
    np.savez(tmp_path / "2.npz", X=X, y=y)
    recovery = revelu.learn(tmp_path)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.details["n_samples"] == 900
    assert largest_error(recovery.network, TRUTH) < 1e-9


def test_numbers_of_fewer_digits_are_read(tmp_path):
    X = samples(TRUTH, 300, 1)[0]
    single = {f"x{i}": column.astype("f4") for i, column in enumerate(X.T)}
    f = TRUTH(np.column_stack(list(single.values())))[:, 0]
    parquet.write_table(table(**single, y=f), tmp_path / "s.parquet")
    assert largest_error(revelu.learn(tmp_path).network, TRUTH) < 1e-9


def without(row, column):
    return [None if i == row else float(value) for i, value in enumerate(column)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x1": without(9, np.ones(300))}, "row 9"),
        ({"y": without(11, np.arange(300))}, "row 11"),
        ({"x0": np.where(np.arange(300) == 4, np.inf, 1.0)}, "row 4"),
        ({"name": ["a"] * 300}, "differ from those of .*0.parquet: name"),
        ({"x1": None}, "differ from those of .*0.parquet: x1"),
        ({"y": None}, "has no column 'y'; it has x0"),
        ({"x1": ["a"] * 300}, "column 'x1' holds str"),
        ({"x1": [[1.0]] * 300}, "column 'x1' holds ndarray"),
    ],
)
def test_a_table_that_does_not_fit_is_named(tmp_path, changed, message):
    parquet.write_table(table(), tmp_path / "0.parquet")
    parquet.write_table(table(**changed), tmp_path / "1.parquet")
    with pytest.raises(revelu.FormatError, match=message) as caught:
        revelu.learn(tmp_path)
    assert "1.parquet" in str(caught.value)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_table_is_named(tmp_path, kept):
    parquet.write_table(table(), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "whole.parquet").write_bytes(content[: int(kept * len(content))])
    with pytest.raises(revelu.FormatError, match=r"whole.parquet: not a readable Parquet"):
        revelu.learn(tmp_path)


def test_damage_inside_a_table_is_named(tmp_path):
    path = tmp_path / "s.parquet"
    parquet.write_table(table(), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)  # the first column's page
    path.write_bytes(content)
    with pytest.raises(revelu.FormatError, match=r"s.parquet: cannot be read"):
        revelu.learn(path)
