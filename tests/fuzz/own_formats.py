"""Targets: what dialeval writes itself or takes ready-made, changed by somebody who knows how it is checked.

Digests in a document are made anew before a changed file is read (`sealed`), as a forger would; so what is behind the
digests is reached as well.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dialeval.core.errors import DataError, Problem
from dialeval.core.files import sha256_of
from fuzz.harness import Files, target
from fuzz.mutation import Unfit, mutated
from judges.tiny_judges import tiny_dialogue_judge
from sealing import write_sealed
from tiny_encoder import write_encoder

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "saved_runs"


def files_of(folder: Path) -> Files:
    """The files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """A copy of an input that may be changed."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "copy")
        shutil.copytree(folder, copy)
        yield copy


def parsed(path: Path) -> Any:
    """The document in a file, or None."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def sealed(document: Any, folder: Path, names: Mapping[str, str]) -> bool:
    """Put the digests of files into a document, by the names of the fields that describe them."""
    changed = False
    for field, default in names.items():
        entry = document.get(field) if isinstance(document, dict) else None
        entry = entry[0] if isinstance(entry, list) and entry else entry
        if isinstance(entry, dict) and (folder / default).is_file():
            entry["sha256"] = hashlib.sha256((folder / default).read_bytes()).hexdigest()
            changed = True
    return changed


# Tables.


_TYPES = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.bool_(), pa.binary(), pa.large_string())
_CELLS: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2**31,
    2**62,
    -(2**63),
    0.5,
    1e100,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\0",
    [],
    [1.0],
)


def _changed_cell(column: pa.ChunkedArray, rng: random.Random) -> pa.Array:
    values = column.to_pylist()
    if not values:
        raise Unfit
    at = rng.randrange(len(values))
    new: Any = rng.choice(_CELLS)
    if isinstance(values[at], list) and rng.random() < 0.7:
        inside = list(values[at])
        inside[rng.randint(0, len(inside)) : rng.randint(0, len(inside))] = [new] * rng.randint(0, 2)
        new = inside
    values[at] = new
    return pa.array(values, column.type)


def changed_table(content: bytes, rng: random.Random) -> bytes:
    """A Parquet file with another cell, type, name, order or number of columns or rows."""
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        if not table.num_columns:
            raise Unfit
        at = rng.randrange(table.num_columns)
        name, column = table.column_names[at], table.column(at)
        kind = rng.randrange(8)
        if kind <= 2:
            table = table.set_column(at, name, _changed_cell(column, rng))
        elif kind == 3:
            table = table.set_column(at, name, column.cast(rng.choice(_TYPES), safe=False))
        elif kind == 4:
            table = table.remove_column(at)
        elif kind == 5:
            other = rng.choice([*table.column_names, "system", "dialogue", "", "\0", "x" * 300])
            table = table.rename_columns(
                [other if here == at else each for here, each in enumerate(table.column_names)]
            )
        elif kind == 6:
            table = table.slice(rng.randint(0, len(table)), rng.randint(0, len(table)))
        else:
            table = table.take([rng.randrange(len(table)) for _ in range(rng.randint(0, 2 * len(table)))])
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()
    except (pa.ArrowException, ValueError, TypeError, OverflowError, OSError):
        raise Unfit from None


# Saved runs.

_RUN_FILES = ("scores", "rows", "contributions")


def _runs() -> list[Files]:
    seeds = [files_of(folder) for folder in sorted(GOLDEN.iterdir())]
    return [*seeds, _compared_run()]


def _compared_run() -> Files:
    """A run of today, with intervals and a field that it kept."""
    import dialeval

    lines = {"one": ["hello there", "good bye", "yes"], "two": ["hello", "no no", "maybe so"]}
    rows = {name: [{"response": text, "topic": ["x", text]} for text in texts] for name, texts in lines.items()}
    run = dialeval.evaluate(
        rows, references=["hello you", "bye", "yes"], metrics=["length", "distinct", "bleu", "chrf"], keep=["topic"]
    )
    run = dialeval.with_intervals(run, resamples=100)
    with tempfile.TemporaryDirectory() as folder:
        run.save(folder)
        return files_of(Path(folder))


def _sealed_run(folder: Path) -> None:
    document = parsed(folder / "run.json")
    sealed(document, folder, {name: f"{name}.parquet" for name in _RUN_FILES})
    if isinstance(document, dict):
        write_sealed(document, folder / "run.json")


@target("saved-run", seeds=_runs, mutators={".parquet": [changed_table]})
def saved_run(folder: Path) -> None:
    """A saved run, and that it loads equal once it has been saved again."""
    from dialeval.core.result import load

    with copied(folder) as copy:
        _sealed_run(copy)
        run = load(copy)
        assert load(run.save(copy / "again")) == run


@target("saved-run-used", seeds=_runs, mutators={".parquet": [changed_table]}, seconds=20)
def saved_run_used(folder: Path) -> None:
    """A saved run as the commands use it: tables, a comparison, intervals, a report, plots."""
    import dialeval
    from dialeval.core.errors import DialevalError
    from dialeval.reports import tables

    with copied(folder) as copy:
        _sealed_run(copy)
        run = dialeval.load(copy)
        uses: list[Callable[[], object]] = [
            lambda: [
                write(run) for write in (tables.to_csv, tables.to_markdown, tables.to_latex, tables.to_metrics_txt)
            ],
            lambda: dialeval.compare(run, resamples=100, trials=100),
            lambda: dialeval.with_intervals(run, resamples=100),
            lambda: dialeval.compare_slices(run, "topic,turn", resamples=50, trials=50),
            lambda: dialeval.report(run, copy / "report.html", compared=False),
            lambda: [repr(run), run.to_arrow(), run.score_table.to_pandas(), *map(run.plot, run.keys_in_order[:3])],
            lambda: run + run,
        ]
        for use in uses:
            try:
                use()
            except DialevalError as error:
                str(error)


@cache
def _judged_run() -> tuple[Any, bytes]:
    """A run of three systems, and the comparison to save with it."""
    import dialeval
    from dialeval.reports.comparisons import judge_run

    texts = {"a": ["one two", "three"] * 4, "b": ["one", "three four five"] * 4, "c": ["", "three"] * 4}
    run = dialeval.evaluate(texts, metrics="length,distinct-1")
    return run, judge_run(run).dump() or b""


@target("saved-comparison", seeds=lambda: [{"comparison.json": _judged_run()[1]}], seconds=20)
def saved_comparison(folder: Path) -> None:
    """A comparison that is not the run's, shown as the commands do; every digest fits."""
    import dialeval
    from dialeval.analysis.comparison import load_comparison
    from dialeval.reports import comparisons

    run, _ = _judged_run()
    content = (folder / "comparison.json").read_bytes() if (folder / "comparison.json").exists() else b""
    with tempfile.TemporaryDirectory() as place:
        run.save(Path(place, "run"), comparison=content)
        found = load_comparison(Path(place, "run"), run, metrics=None, most_tests=300)
        if found is not None:
            for write in comparisons.FORMATS.values():
                write(found)
            dialeval.report(run, Path(place, "report.html"), compared=found)


# Judges and encoders.


def changed_tensors(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file with another header, or with other numbers."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 + size:
        raise Unfit
    header, data = content[8 : 8 + size], bytearray(content[8 + size :])
    if rng.random() < 0.6:
        header = mutated({"header.json": header}, rng)["header.json"]
    elif data:
        at = rng.randrange(len(data)) // 4 * 4
        data[at : at + 4] = np.float32(rng.choice([np.nan, np.inf, 1e38, 0.0, -1.0])).tobytes()
    return len(header).to_bytes(8, "little") + header + bytes(data)


def _encoders() -> list[Files]:
    with tempfile.TemporaryDirectory() as place:
        return [
            files_of(write_encoder(Path(place, "a"), prefix="bert.")),
            files_of(write_encoder(Path(place, "b"), pooling="cls_token", normalized=False)),
        ]


@target("encoder", seeds=_encoders, mutators={".safetensors": [changed_tensors]}, seconds=10)
def encoder(folder: Path) -> None:
    """A folder of a sentence encoder, and vectors by it."""
    from dialeval.metrics.encoder import Encoder
    from dialeval.metrics.encoder_files import find_encoder

    made = Encoder(find_encoder(folder))
    assert made.digest
    with np.errstate(all="ignore"):  # weights of 1e38 give vectors without a meaning
        assert made.encode(["the cat sat", "", "hello there ?"]).shape == (3, made.dimension)


def _judges() -> list[Files]:
    from dialeval.judges.adem import SHIPPED, AdemWeights

    dice = np.random.default_rng(1)
    sides: dict[str, Any] = {name: dice.normal(size=(8, 2)) for name in _SIDES}
    scales = {"both": (0.5, 2.0), "context": (0.5, 1.0), "reference": (0.0, 1.0)}
    weights = AdemWeights("adem", 1.0, **sides, response=dice.normal(size=8), calibration=scales, facts={"rows": 3})
    with tempfile.TemporaryDirectory() as place:
        small = files_of(weights.save(place))
    names = ("judge.json", "judge.safetensors")
    return [small, {name: (SHIPPED / name).read_bytes() for name in names}]


_SIDES = ("context_left", "context_right", "reference_left", "reference_right")


@target("judge", seeds=_judges, mutators={".safetensors": [changed_tensors]})
def judge(folder: Path) -> None:
    """A folder of a judge, and scores by it."""
    from dialeval.judges.adem import Encoded, load_adem

    with copied(folder) as copy:
        _seal_judge(copy)
        weights = load_adem(copy)
        rows: Any = np.ones((2, weights.dimension), np.float32)
        there = np.ones(2, np.bool_)
        with np.errstate(all="ignore"):
            assert len(weights.score(Encoded(rows, rows, rows, there, ~there))) == 2
        assert weights.digest


def _seal_judge(folder: Path) -> None:
    """Put the digest of the weights into the facts of a judge."""
    document = parsed(folder / "judge.json")
    if isinstance(document, dict) and (folder / "judge.safetensors").is_file():
        document["sha256"] = hashlib.sha256((folder / "judge.safetensors").read_bytes()).hexdigest()
        write_sealed(document, folder / "judge.json")


def _dialogue_judges() -> list[Files]:
    with tempfile.TemporaryDirectory() as place:
        tiny_dialogue_judge(Path(place))
        return [files_of(Path(place, "judge"))]


@target("dialogue-judge", seeds=_dialogue_judges, mutators={".safetensors": [changed_tensors]})
def dialogue_judge(folder: Path) -> None:
    """A folder of a judge that reads context and response together, and scores by it."""
    from dialeval.judges.judge import DialogueJudge

    with copied(folder) as copy, tempfile.TemporaryDirectory() as place:
        _seal_judge(copy)
        made = DialogueJudge(copy, write_encoder(Path(place, "encoder")))
        with np.errstate(all="ignore"):  # weights of 1e38 give scores without a meaning
            scores = made.score([["hello there", "how are you ?"]] * 2, ["i am fine", "the cat"], [["the dog"], []])
        assert len(scores) == 2
        assert made.digest


# Packs, and arrays.


def _packs() -> list[Files]:
    groups = json.dumps({"a query": {"group": ["an answer"]}}).encode()
    facts = {"sha256": hashlib.sha256(groups).hexdigest(), "size": len(groups)}
    manifest = {"name": "lsdscc", "version": "test", "license": "", "origin": "x", "files": {"test.group.json": facts}}
    folder = "packs/lsdscc/test"
    return [{f"{folder}/manifest.json": json.dumps(manifest).encode(), f"{folder}/test.group.json": groups}]


@target("pack", seeds=_packs)
def pack(folder: Path) -> None:
    """The data packs in a cache folder."""
    from dialeval.io import packs

    with copied(folder) as copy, cache_at(copy):
        place = copy / "packs" / "lsdscc" / "test"
        document, groups = parsed(place / "manifest.json"), place / "test.group.json"
        entries = document.get("files") if isinstance(document, dict) else None
        facts = entries.get(groups.name) if isinstance(entries, dict) else None
        if isinstance(facts, dict) and groups.is_file():
            content = groups.read_bytes()
            facts |= {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            (place / "manifest.json").write_text(json.dumps(document))
        if (pack := packs.find_pack("lsdscc")) is not None:
            assert pack.digest
        if problems := packs.verify_pack("lsdscc"):
            raise DataError(problems)


@contextmanager
def cache_at(folder: Path) -> Iterator[None]:
    """The cache folder of dialeval is another one for a while."""
    before = os.environ.get("DIALEVAL_CACHE")
    os.environ["DIALEVAL_CACHE"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("DIALEVAL_CACHE")
        if before is not None:
            os.environ["DIALEVAL_CACHE"] = before


def changed_header(content: bytes, rng: random.Random) -> bytes:
    """An `.npy` file with another header, of a length that fits."""
    if len(content) < 10:
        raise Unfit
    size = int.from_bytes(content[8:10], "little")
    header = content[10 : 10 + size]
    old, new = rng.choice(_HEADERS)
    changed = header.replace(old, new) if old in header else mutated({"header.txt": header}, rng)["header.txt"]
    return content[:8] + (len(changed) & 0xFFFF).to_bytes(2, "little") + changed + content[10 + size :]


_HEADERS = [
    (b"'<f4'", b"'|O'"),
    (b"'<f4'", b"'<f8'"),
    (b"'<f4'", b"[('a', '<f4')]"),
    (b"'<f4'", b"'<M8[s]'"),
    (b"(3, 2)", b"(3, -2)"),
    (b"(3, 2)", b"(3000000000000, 2)"),
    (b"(3, 2)", b"(2**70, 2)"),
    (b"(3, 2)", b"(" * 200),
    (b"False", b"__import__('os')"),
    (b"False", b"True"),
    (b"{", b"[" * 3000),
]


# Caches of vectors.

_TEXT = b"one 1 2\ntwo 3 4\nthree 5 6\n"


def _loaded(cache: Path, source: Path) -> Any:
    from dialeval.io.vectors import load_embeddings

    with cache_at(cache):
        return load_embeddings(source).vectors_for(["one", "three", "four"])


def _vector_caches() -> list[Files]:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "vectors.txt")
        source.write_bytes(_TEXT)
        _loaded(Path(place, "cache"), source)
        return [files_of(Path(place, "cache"))]


@target("vector-cache", seeds=_vector_caches, seconds=10)
def vector_cache(folder: Path) -> None:
    """A cache of word vectors: what is in it is right, or made anew."""
    from dialeval.io import vectors as vectorstore

    with copied(folder) as copy:
        for entry in copy.rglob("entry.json"):
            facts = parsed(entry)
            words = entry.parent / "words.json"
            if isinstance(facts, dict) and words.is_file():
                write_sealed({**facts, "words_check": zlib.crc32(words.read_bytes())}, entry)
        source = copy / "vectors.txt"
        source.write_bytes(_TEXT)
        with cache_at(copy):
            place = vectorstore.find_entry(sha256_of(source))
        for entry in [*copy.glob("vectors/*")][:1]:  # its name is made of the source, which is another one here
            entry.rename(place)
        before = {entry: entry.stat().st_ino for entry in copy.rglob("entry.json")}
        vectors, known = _loaded(copy, source)
        assert vectors.shape[0] == len(known) == 3
        if before != {entry: entry.stat().st_ino for entry in copy.rglob("entry.json")}:
            raise _made_anew(folder)


def _made_anew(folder: Path) -> DataError:
    """A cache refuses nothing; what it makes anew counts as refused here."""
    return DataError(Problem(str(folder), None, "is damaged", "it is rebuilt"))


@cache
def _run_to_rate() -> Any:
    import dialeval

    rows = [{"dialog_id": f"d{n // 2}", "turn": n % 2, "response": f"word {n}"} for n in range(12)]
    return dialeval.evaluate({"a": rows, "b": rows}, metrics="length", execution=dialeval.Execution(threads=1))


def _samples() -> list[Files]:
    """A folder of rows to rate with ratings of them, for each kind of draw."""
    import dialeval

    seeds: list[Files] = []
    for settings in ({}, {"stratify": ["turn"]}, {"dialogues": True}):
        with tempfile.TemporaryDirectory() as place:
            sample = dialeval.sample(_run_to_rate(), 12, **settings)
            folder = sample.save(place)
            files = {name: (folder / name).read_bytes() for name in ("sample.json", "rows.jsonl")}
        lines = [
            json.dumps({"id": row.id, "rater": "ann", "scores": {"overall": n % 5}})
            for n, row in enumerate(sample.responses)
        ]
        seeds.append({**files, "ratings.jsonl": "\n".join(lines).encode()})
    return seeds


@target("sample", seeds=_samples)
def rows_to_rate(folder: Path) -> None:
    """A folder of rows to rate, and an estimate from ratings of them."""
    import dialeval

    with copied(folder) as copy:
        document = parsed(copy / "sample.json")
        if sealed(document, copy, {"rows": "rows.jsonl"}):
            text = json.dumps(document, ensure_ascii=False)
            (copy / "sample.json").write_text(text, "utf-8", "surrogatepass")
        dialeval.estimate_ratings(_run_to_rate(), copy / "ratings.jsonl", judge="length", sample=copy, population="run")
        dialeval.estimate_ratings(_run_to_rate(), copy / "ratings.jsonl", judge="length", sample=copy)


def _rated_folders() -> list[Files]:
    """A folder of rows to rate with a form, lines of raters, and the database of a server."""
    from dialeval.human.store import Rating, RatingStore

    form = b'title = "t"\nrepeat = 0.2\n[[quality]]\nname = "overall"\nlow = 0\nhigh = 9\n'
    seeds: list[Files] = []
    for files in _samples()[:2]:
        with tempfile.TemporaryDirectory() as place:
            store = RatingStore(Path(place) / "ratings.sqlite", "d")
            lines = [json.loads(line) for line in files["ratings.jsonl"].splitlines()]
            store.add_raters(["ann"])
            store.assign([line["id"] for line in lines], 1, seed=1)
            for line in lines:
                store.save("ann", Rating(**line))
            store.close()
            database = (Path(place) / "ratings.sqlite").read_bytes()
        seeds.append({**files, "form.toml": form, "ratings.sqlite": database})
    return seeds


@target("rated", seeds=_rated_folders)
def rated_folders(folder: Path) -> None:
    """What raters sent back, put together, and a page for what they differ on."""
    from dialeval.human.form import make_score_check, read_form
    from dialeval.human.merge import make_rated_rows, merge_ratings
    from dialeval.human.page import make_rating_page
    from dialeval.human.sample_files import read_sample
    from dialeval.reports import documents

    with copied(folder) as copy:
        document = parsed(copy / "sample.json")
        if sealed(document, copy, {"rows": "rows.jsonl"}):
            text = json.dumps(document, ensure_ascii=False)
            (copy / "sample.json").write_text(text, "utf-8", "surrogatepass")
        sample, form = read_sample(copy), read_form(copy / "form.toml")
        check = make_score_check(form, sample)
        merged = merge_ratings([copy / "ratings.jsonl", copy / "ratings.sqlite"], sample, check=check)
        make_rated_rows(merged, sample, "overall")
        documents.FORMATS["md"](merged)
        documents.FORMATS["json"](merged)
        make_rating_page(sample, form, [each.id for each in merged.disputed]).encode()
