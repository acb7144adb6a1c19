"""How sound files are changed: in their bytes, and in their structure where the suffix says what they are.

`mutated` changes one to three things of an input. What it does depends on the random generator alone. A mutator takes
the bytes of a file and the generator, and gives other bytes; one that cannot make anything of a file raises `Unfit`.
"""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

Mutator: TypeAlias = Callable[[bytes, random.Random], bytes]

MOST_BYTES = 1 << 18
"""A changed file is cut here: what doubles again and again fills the disk, and large inputs are for other tests."""


class Unfit(Exception):  # noqa: N818  (no error: another mutator is taken)
    """A mutator can do nothing with a file."""


TOKENS: Sequence[bytes] = (
    *(b"\0", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x1c", b"\x1f", b"\x7f", b"\x85", b"\xa0"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"),
    *("\u2028".encode(), "\u0085".encode(), "\u202e".encode(), "\u200b".encode(), "\ufeff".encode(), "\ufffd".encode()),
    *("e\u0301".encode(), "ß".encode(), "İ".encode(), "ﬁ".encode(), "𝒳".encode(), "👩‍👩‍👧".encode(), "٣".encode()),
    *(b'"', b"'", b"\\", b"\\u", b"\\ud800", b"\\u0000", b",", b";", b":", b"{", b"}", b"[", b"]", b"[[", b"{}", b"[]"),
    *(b"null", b"true", b"false", b"NaN", b"nan", b"Infinity", b"-inf", b"1e308", b"1e999", b"1e-320", b"-0", b"-1"),
    *(b"0", b"1", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1" * 400),
    *(b"0.1", b"1.5", b"0x10", b"1_000", b"+1", b".5", b"5.", b"00", b"1e", b"=1+1", b"@x", b"\x1b[31m", b"\x9b31m"),
    *(b"\x1b]8;;http://x/\x1b\\", b"<script>", b"</s>", b"../x", b"/dev/zero", b"%s%n", b"${x}", b"__class__", b"//"),
    *(b"response", b"reference", b"context", b"dialog_id", b"turn", b"system", b"messages", b"role", b"content"),
)

NUMBERS: Sequence[bytes] = (
    *(b"0", b"-1", b"1", b"255", b"256", b"65536", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807"),
    *(b"9223372036854775808", b"-9223372036854775809", b"1e308", b"1e309", b"-1e308", b"1e-308", b"5e-324", b"nan"),
    *(b"inf", b"0.0", b"-0.0", b"1" * 30, b"1" * 5000, b"0.1", b"1e15"),
)

VALUES: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0),
    *(1e308, -1e308, 1e-320, 1e15 + 0.3, float("nan"), float("inf"), float("-inf")),
    *(
        "",
        " ",
        "\0",
        "\r\n",
        "\n",
        "x",
        "0",
        "1",
        "null",
        "\ud800",
        "\ud83d\ude00",
        "e\u0301",
        "\u202eabc",
        "a\x1b[31mb",
    ),
    *("=1+1", "<b>", "x" * 3000, "a b " * 400, "</s>", "../x", "user", "assistant", "system", "O", "T", "X"),
    *([], {}, [[]], [{}], [None], [""], ["a", "b"], [1, 2], {"": ""}, {"a": {"a": {"a": []}}}, {"0": []}, [[["a"]]]),
    *({"role": "assistant", "content": "x"}, {"text": "x", "speaker": "user"}, {"response": "x"}, [["a"], ["b", "c"]]),
)


def mutated(
    files: Mapping[str, bytes],
    rng: random.Random,
    others: Sequence[Mapping[str, bytes]] = (),
    more: Mapping[str, Sequence[Mutator]] | None = None,
) -> dict[str, bytes]:
    """An input with one to three changes; rarely a file is gone, empty, or that of another seed."""
    changed = dict(files)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not changed:
            break
        name = rng.choice(sorted(changed))
        chance = rng.random()
        if chance < 0.01 and len(changed) > 1:
            del changed[name]
        elif chance < 0.02:
            changed[name] = b""
        elif chance < 0.06 and others:
            changed[name] = _spliced(changed[name], rng.choice(others), rng)
        else:
            sound = changed[name] == files.get(name)
            changed[name] = _changed(name, changed[name], rng, (more or {}).get(PurePosixPath(name).suffix, ()), sound)
    return changed


_SOUND_ONLY = frozenset({".parquet"})
"""Their structure is changed by Arrow, which may end the process where it is given a broken file."""


def _changed(name: str, content: bytes, rng: random.Random, more: Sequence[Mutator] = (), sound: bool = False) -> bytes:
    suffix = PurePosixPath(name).suffix
    suited = [*BY_SUFFIX.get(suffix, ()), *more] if sound or suffix not in _SOUND_ONLY else []
    for _ in range(8):
        try:
            mutator = rng.choice(suited if suited and rng.random() < 0.6 else BYTES)
            if mutator is _gzip_inside:
                return _gzip_inside(content, rng, PurePosixPath(name).stem)[:MOST_BYTES]
            return mutator(content, rng)[:MOST_BYTES]
        except Unfit:
            continue
    return content


def _spliced(content: bytes, other: Mapping[str, bytes], rng: random.Random) -> bytes:
    """The front of a file and the back of one of another seed."""
    if not other:
        return content
    back = other[rng.choice(sorted(other))]
    return content[: rng.randint(0, len(content))] + back[rng.randint(0, len(back)) :]


# Bytes


def _stretch(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    length = rng.choice((1, 1, 2, 3, 4, 8, 16, 40, 200, max(1, len(content) // 2)))
    return start, min(len(content), start + length)


def flip(content: bytes, rng: random.Random) -> bytes:
    """Some bits are the other way round."""
    if not content:
        raise Unfit
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def set_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few bytes are replaced by remarkable ones: a length or an offset that is off, a sign that turns over."""
    if not content:
        raise Unfit
    start = rng.randrange(len(content))
    value = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"\x01", rng.randbytes(1)))
    size = rng.choice((1, 1, 2, 4, 8))
    return content[:start] + value * size + content[start + size :]


def remove(content: bytes, rng: random.Random) -> bytes:
    """A stretch is gone."""
    start, end = _stretch(content, rng)
    return content[:start] + content[end:]


def repeat(content: bytes, rng: random.Random) -> bytes:
    """A stretch stands there several times."""
    start, end = _stretch(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 1, 2, 7, 60)) + content[end:]


def cut(content: bytes, rng: random.Random) -> bytes:
    """The end is gone; often only just the end."""
    if not content:
        raise Unfit
    return content[: rng.randrange(len(content)) if rng.random() < 0.6 else -min(len(content), rng.randint(1, 12))]


def insert_noise(content: bytes, rng: random.Random) -> bytes:
    """Random bytes in between."""
    start = rng.randint(0, len(content))
    return content[:start] + rng.randbytes(rng.choice((1, 2, 5, 30))) + content[start:]


def insert_token(content: bytes, rng: random.Random) -> bytes:
    """Something that means something to one parser or another."""
    start, end = _stretch(content, rng)
    return content[:start] + rng.choice(TOKENS) + content[rng.choice((start, start, end)) :]


def swap(content: bytes, rng: random.Random) -> bytes:
    """Two stretches change places."""
    first, second = sorted((_stretch(content, rng), _stretch(content, rng)))
    if first[1] > second[0]:
        raise Unfit
    (a, b), (c, d) = first, second
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def other_number(content: bytes, rng: random.Random) -> bytes:
    """A number in digits is another one."""
    found = list(_NUMBER.finditer(content[:65536]))
    if not found:
        raise Unfit
    match = rng.choice(found)
    return content[: match.start()] + rng.choice(NUMBERS) + content[match.end() :]


BYTES: Sequence[Mutator] = (
    flip,
    set_bytes,
    remove,
    repeat,
    cut,
    insert_noise,
    insert_token,
    insert_token,
    swap,
    other_number,
)


# Lines


def lines(content: bytes, rng: random.Random) -> bytes:
    """A line is gone, doubled, moved, or one of its words is another."""
    rows = content.split(b"\n")
    at = rng.randrange(len(rows))
    how = rng.randrange(5)
    if how == 0:
        del rows[at]
    elif how == 1:
        rows.insert(rng.randint(0, len(rows)), rows[at])
    elif how == 2:
        rows.insert(rng.randint(0, len(rows) - 1), rows.pop(at))
    elif how == 3:
        rows[at] = rng.choice(TOKENS)
    else:
        words = rows[at].split(b" ")
        words[rng.randrange(len(words))] = rng.choice((*TOKENS, *NUMBERS, b"word" * 500, b""))
        rows[at] = b" ".join(words)
    return b"\n".join(rows)


# JSON


def json_structure(content: bytes, rng: random.Random) -> bytes:
    """A part of a document is replaced, removed, repeated, renamed, nested or exchanged with another."""
    try:
        return _dumped(changed_document(json.loads(content), rng), rng)
    except (ValueError, RecursionError):
        raise Unfit from None


def jsonl_structure(content: bytes, rng: random.Random) -> bytes:
    """The same for one line of many."""
    rows = content.split(b"\n")
    at = rng.randrange(len(rows))
    rows[at] = json_structure(rows[at], rng).replace(b"\n", b" ")
    return b"\n".join(rows)


def _dumped(document: Any, rng: random.Random) -> bytes:
    # Lone surrogates can only be written as escapes.
    text = json.dumps(document, indent=rng.choice((None, None, 1)))
    if rng.random() < 0.05:  # a key that stands there twice
        text = re.sub(r'("[^"\\]*": )', r"\1null, \1", text, count=1)
    return text.encode()


def changed_document(document: Any, rng: random.Random) -> Any:
    """The document with one of its parts changed in place."""
    places = list(_places(document))
    if not places or rng.random() < 0.03:
        return copy.deepcopy(rng.choice(VALUES))
    parent, key = rng.choice(places)
    how = rng.randrange(7)
    if how == 0:
        del parent[key]
    elif how == 1 and isinstance(parent, list):
        parent.insert(rng.randint(0, len(parent)), copy.deepcopy(parent[key]))
    elif how == 2 and isinstance(parent, dict):
        parent[str(rng.choice((*parent, "", "x", "\ud800", "0", "-1", "__class__")))] = parent.pop(key)
    elif how == 3:
        for _ in range(rng.choice((1, 2, 500))):
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"x": parent[key]}
    elif how == 4:
        other, other_key = rng.choice(places)
        parent[key] = copy.deepcopy(other[other_key])
    else:
        parent[key] = copy.deepcopy(rng.choice(VALUES))
    return document


def _places(document: Any) -> Sequence[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    stack = [document]
    while stack and len(found) < 20000:
        value = stack.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            found.append((value, key))
            stack.append(value[key])
    return found


# CSV and TSV


_QUOTINGS: Sequence[Literal[0, 1, 2]] = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)


def csv_structure(content: bytes, rng: random.Random, delimiter: str = ",") -> bytes:
    """A cell, a column or a row of a table is another, gone or doubled, and quotes stand in other places."""
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline="\n"), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error):
        raise Unfit from None
    rows = [row for row in rows if row] or [["response"]]
    at = rng.randrange(len(rows))
    column = rng.randrange(len(rows[at]))
    how = rng.randrange(6)
    if how == 0:
        del rows[at][column]
    elif how == 1:
        for row in rows:
            row.append(row[min(column, len(row) - 1)] if row else "")
    elif how == 2:
        rows.insert(at, list(rows[at]))
    elif how == 3:
        for row in rows:
            del row[column : column + 1]
    else:
        value = rng.choice(VALUES)
        rows[at][column] = value if isinstance(value, str) else json.dumps(value)
    out = io.StringIO()
    quoting = rng.choice(_QUOTINGS)
    end = rng.choice(("\n", "\n", "\r\n"))
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def tsv_structure(content: bytes, rng: random.Random) -> bytes:
    """The same between tabs."""
    return csv_structure(content, rng, "\t")


# Parquet


def _table_content(table: Any, rng: random.Random) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    try:
        packing = rng.choice(("none", "snappy", "zstd", "gzip"))
        dictionary = rng.random() < 0.5
        parquet.write_table(table, sink, compression=packing, use_dictionary=dictionary, row_group_size=3)
    except (pa.ArrowException, ValueError):
        raise Unfit from None
    return bytes(sink.getvalue())


def _column(rng: random.Random, rows: int) -> Any:
    import pyarrow as pa

    kind = rng.randrange(9)
    if kind == 0:
        return pa.nulls(rows)
    if kind == 1:
        return pa.array([rng.choice((None, 0, 1, -1, 2**62)) for _ in range(rows)], pa.int64())
    if kind == 2:
        return pa.array([rng.choice((None, 0.5, float("nan"), float("inf"))) for _ in range(rows)], pa.float64())
    if kind == 3:
        return pa.array([rng.choice((b"", b"\xff", b"a b", None)) for _ in range(rows)], pa.binary())
    if kind == 4:
        return pa.array([rng.choice(("a b", "", None)) for _ in range(rows)]).dictionary_encode()
    if kind == 5:
        return pa.array([rng.choice(([], ["a", None], ["b c"], None)) for _ in range(rows)], pa.list_(pa.string()))
    if kind == 6:
        struct = pa.struct([("role", pa.string()), ("content", pa.string())])
        said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        return pa.array([rng.choice((said, [], None, [None])) for _ in range(rows)], pa.list_(struct))
    if kind == 7:
        return pa.array([rng.choice(("a\0b", "\u202e", "x" * 300, "")) for _ in range(rows)], pa.large_string())
    broken = pa.py_buffer(b"a\xff\xed\xa0\x80b" + b"x" * rows)
    offsets = pa.py_buffer(b"".join((min(row, 6)).to_bytes(4, "little") for row in range(rows + 1)))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, broken])


def parquet_structure(content: bytes, rng: random.Random) -> bytes:
    """A column is another, gone, doubled, renamed; rows are gone; the table is packed otherwise."""
    import pyarrow as pa
    from pyarrow import parquet

    source = pa.BufferReader(content)
    try:
        table = parquet.read_table(source)
    except (pa.ArrowException, OSError, ValueError):
        raise Unfit from None
    if not table.num_columns or table.num_rows > 1000:
        raise Unfit
    at = rng.randrange(table.num_columns)
    how = rng.randrange(7)
    names = ("response", "reference", "context", "messages", "turn", "dialog_id", "scores", "", "x", "a\x1b[1m")
    if how == 0:
        table = table.remove_column(at)
    elif how == 1:
        table = table.append_column(table.column_names[at], table.column(at))
    elif how == 2:
        table = table.rename_columns([rng.choice(names) if at == i else n for i, n in enumerate(table.column_names)])
    elif how == 3:
        table = table.slice(rng.randint(0, table.num_rows), rng.randint(0, 3))
    elif how == 4:
        table = pa.concat_tables([table] * rng.choice((2, 3)))
    else:
        table = table.set_column(at, table.column_names[at], _column(rng, table.num_rows))
    return _table_content(table, rng)


# Packed files


def _gzip_inside(content: bytes, rng: random.Random, inner: str = "x") -> bytes:
    """What is packed is changed and packed again, sometimes in two parts or with something behind it."""
    try:
        plain = gzip.decompress(content)
    except (OSError, EOFError):
        raise Unfit from None
    except Exception:  # zlib.error
        raise Unfit from None
    made = _changed(inner, plain, rng)
    half = rng.randint(0, len(made))
    how = rng.randrange(6)
    if how == 0:
        return gzip.compress(made[:half], mtime=0) + gzip.compress(made[half:], mtime=0)
    packed = gzip.compress(made, mtime=0)
    return packed + rng.choice((b"", b"\0" * 20, b"x", b"\x1f\x8b")) if how == 1 else packed


_MEMBER_NAMES = ("../up", "/root", "a/../../b", "", ".", "x\0y", "a" * 300, "con", "\x1b[1m", "\udcff")


def tar_structure(content: bytes, rng: random.Random) -> bytes:
    """A member is changed, renamed, a link, a device, doubled or of a size that is not true."""
    members = _tar_members(content)
    at = rng.randrange(len(members))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, (name, data) in enumerate(members):
            info = tarfile.TarInfo(name)
            if number == at:
                how = rng.randrange(5)
                if how == 0:
                    info.name = rng.choice(_MEMBER_NAMES)
                elif how == 1:
                    info.type = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE))
                    info.linkname = rng.choice(("../up", "/etc/passwd", name))
                elif how == 2:
                    archive.addfile(_sized(tarfile.TarInfo(name), data), io.BytesIO(data))
                else:
                    data = _changed(name, data, rng)
            archive.addfile(_sized(info, data), io.BytesIO(data))
    made = out.getvalue()
    return gzip.compress(made, mtime=0) if content[:2] == b"\x1f\x8b" else made


def _tar_members(content: bytes) -> list[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = [(each.name, archive.extractfile(each)) for each in archive if each.isreg()]
            members = [(name, file.read()) for name, file in files if file is not None]
    except Exception:
        raise Unfit from None
    if not members:
        raise Unfit
    return members


def _sized(info: tarfile.TarInfo, data: bytes) -> tarfile.TarInfo:
    info.size = len(data) if info.type == tarfile.REGTYPE else 0
    return info


def zip_structure(content: bytes, rng: random.Random) -> bytes:
    """A member is changed, renamed or doubled."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:
        raise Unfit from None
    if not members:
        raise Unfit
    at = rng.randrange(len(members))
    name, data = members[at]
    how = rng.randrange(3)
    if how == 0:
        members[at] = (rng.choice(_MEMBER_NAMES[:-1]), data)
    elif how == 1:
        members.append((f"{name}x", data))
    else:
        members[at] = (name, _changed(name, data, rng))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for each, inside in members:
            archive.writestr(zipfile.ZipInfo(each or "x"), inside)
    return out.getvalue()


# TOML

_TOML = ("1", "-1", "true", '""', '"x"', "[]", "{}", "[[]]", '["x", 1]', "nan", "1e999", "1979-05-27", "{a = {b = 1}}")


def toml_structure(content: bytes, rng: random.Random) -> bytes:
    """A key has another value, another name, stands twice, or a table has another name."""
    rows = content.split(b"\n")
    keys = [number for number, row in enumerate(rows) if b"=" in row or row.startswith(b"[")]
    if not keys:
        raise Unfit
    at = rng.choice(keys)
    key, equals, value = rows[at].partition(b"=")
    how = rng.randrange(4)
    if how == 0:
        del rows[at]
    elif how == 1:
        rows.insert(rng.randint(0, len(rows)), rows[at])
    elif how == 2 and equals:
        rows[at] = rng.choice((b"x", b'""', b'"a.b"')) + b" = " + value
    elif equals:
        rows[at] = key + b"= " + rng.choice(_TOML).encode()
    else:
        rows[at] = rng.choice((b"[x]", b"[[x]]", b"[x.y]", b"[]"))
    return b"\n".join(rows)


BY_SUFFIX: Mapping[str, Sequence[Mutator]] = {
    ".txt": (lines,),
    ".json": (json_structure,),
    ".jsonl": (jsonl_structure, lines),
    ".csv": (csv_structure,),
    ".tsv": (tsv_structure,),
    ".parquet": (parquet_structure,),
    ".gz": (_gzip_inside,),
    ".tar": (tar_structure,),
    ".tgz": (tar_structure,),
    ".zip": (zip_structure,),
    ".toml": (toml_structure,),
    ".vec": (lines,),
}
