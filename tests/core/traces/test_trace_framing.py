"""Bytes to rows: lines and array elements, whatever the split."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.traces.framing import RawRow, split_array, split_lines
from loadgen.core.traces.row import BadRow


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at those places."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(edges)]


def by_byte(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_end_ends_a_line_and_the_last_needs_none(end: bytes) -> None:
    """LF, CRLF and CR files give the same lines with physical numbers, with and without a final end."""
    data = end.join([b"a,b", b"1,2", b"3,4"])
    for whole in (data, data + end):
        for chunks in ([whole], by_byte(whole)):
            rows = list(split_lines(chunks))
            assert [(row.line, row.data) for row in rows] == [(1, b"a,b"), (2, b"1,2"), (3, b"3,4")]
            assert all(whole[row.position :].startswith(row.data) for row in rows)


def test_blank_lines_keep_the_count_of_physical_lines() -> None:
    """A blank line is a line of its own, so that later numbers are those of an editor."""
    assert list(split_lines([b"a\n\n\nb"])) == [
        RawRow(1, 0, b"a"),
        RawRow(2, 2, b""),
        RawRow(3, 3, b""),
        RawRow(4, 4, b"b"),
    ]


def test_unicode_line_separators_do_not_end_a_line() -> None:
    """U+2028, U+0085 and form feed are content."""
    text = "a\u2028b\u0085c\x0cd"
    assert [row.data for row in split_lines([text.encode()])] == [text.encode()]


@given(
    st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\r", b"").replace(b"\n", b"")), max_size=12),
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12),
    st.lists(st.integers(0, 200), max_size=20),
)
def test_any_split_gives_the_same_lines(contents: list[bytes], ends: list[bytes], cuts: list[int]) -> None:
    """Lines with any mix of ends, in chunks cut anywhere, are those of the whole."""
    data = b"".join(content + end for content, end in zip(contents, ends, strict=False))
    whole = list(split_lines([data]))
    assert list(split_lines(pieces(data, cuts))) == whole
    assert list(split_lines(by_byte(data))) == whole


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 2]), st.booleans(), st.lists(st.integers(0, 999)))
def test_any_split_gives_the_same_elements(
    values: list[object], indent: int | None, ascii_only: bool, cuts: list[int]
) -> None:
    """Elements of an array, pretty-printed or not, with any text in them, are found whatever the chunks."""
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode()
    for chunks in ([data], pieces(data, cuts), by_byte(data)):
        rows = list(split_array(chunks))
        assert [json.loads(row.data) for row in rows] == values
        for row in rows:
            assert data[row.position : row.position + len(row.data)] == row.data
            assert row.line == data.count(b"\n", 0, row.position) + 1


def test_text_with_brackets_quotes_and_backslashes_is_one_string() -> None:
    """Structure inside strings is not structure."""
    values = [{"v": '}],[{"\\'}, {"v": "\\\\"}, {"v": '\\"'}]
    assert [json.loads(row.data) for row in split_array(by_byte(json.dumps(values).encode()))] == values


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'[{"a": 1}, {"b"', "cut short"),
        (b'[{"a": 1}', "cut short"),
        (b'[{"a": "x', "cut short"),
        (b"[", "cut short"),
        (b'{"a": 1}', "expected a JSON array"),
        (b"x [1]", "expected a JSON array"),
        (b"[1] [2]", "more after the end"),
        (b"[1]\nx", "more after the end"),
    ],
)
def test_what_is_not_one_whole_array_is_refused(data: bytes, what: str) -> None:
    """A cut file, another value, or something behind the array is an error, also byte by byte."""
    for chunks in ([data], by_byte(data)):
        with pytest.raises(BadRow, match=what):
            list(split_array(chunks))


def test_the_end_of_a_cut_array_has_a_line() -> None:
    """The error names the last physical line."""
    with pytest.raises(BadRow) as caught:
        list(split_array([b'[\n{"a": 1},\n{"b": 2}\n']))
    assert caught.value.line == 4


def test_empty_elements_are_rows() -> None:
    """`[1,,2]` has a row that cannot be parsed, not two rows."""
    assert [row.data for row in split_array([b"[1,,2]"])] == [b"1", b"", b"2"]
