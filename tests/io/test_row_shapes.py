from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core import inputs
from dialeval.core.errors import Problem, collect_warnings
from dialeval.io.reading import read_responses
from dialeval.io.row_shapes import (
    OWN,
    SHAPES,
    Filters,
    RowShape,
    explain_shape,
    find,
    find_document_rows,
    find_shape,
    is_row,
    list_columns,
    list_unlike,
    map_fields,
    value_at,
)
from dialeval.io.rows import FieldNames

Caught = Callable[[Callable[[], object]], list[Problem]]
READ = [OWN, *(shape for shape in SHAPES if not shape.refused)]
REFUSED = [shape for shape in SHAPES if shape.refused]


def test_paths_lead_into_objects_and_lists() -> None:
    row = {"a": [{"b": 1}, (2, 3)], "a.0": "whole", "c": None}
    assert value_at(row, "a.0.b") == 1
    assert value_at(row, "a.1.1") == 3
    assert value_at(row, "a.0") == "whole", "a key that is the whole path comes first"
    for nothing in ("x", "c.d", "a.2", "a.-1", "a.b", "a.0.b.c", "a.99999999999999999999"):
        assert value_at(row, nothing) is None


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_example_is_told_by_its_signs(shape: RowShape) -> None:
    found = find_shape(dict(shape.example))
    assert found is shape


@pytest.mark.parametrize("shape", READ, ids=lambda shape: shape.name)
@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_every_example_is_read(tmp_path: Path, shape: RowShape, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    numbered = shape.paths.get("trial", "")
    named = shape.paths.get("dialog_id", "").split(" | ")
    rows: Any = [
        {key: n if key in (numbered, *named) else value for key, value in shape.example.items()} for n in range(2)
    ]
    rows = rows[:1] if shape.assembler else rows
    if suffix == "json" and shape.document:
        rows = {shape.document[0]: {}, shape.document[-1]: rows}
    text = json.dumps(rows) if suffix == "json" else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text)
    [system] = read_responses(path)
    assert set(system.responses) <= {"At nine.", "Hi.", *([""] if "input" in shape.name or not shape.main else [])}
    assert len(system) == (4 if shape.several or "input" in shape.name else 1 if shape.assembler else 2)


@pytest.mark.parametrize("shape", REFUSED, ids=lambda shape: shape.name)
def test_what_is_known_and_not_read_says_what_to_do(shape: RowShape, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses([shape.example]))
    assert (problem.what, problem.remedy) == (f"is {shape.title}", shape.refused)


def test_fields_that_a_shape_finds() -> None:
    rows = [
        {"doc": {}, "resps": [["r"]], "target": "t", "doc_id": 7, "arguments": [["c", {}]]},
        {"doc": {}, "resps": [["s"]], "target": "u", "doc_id": 8, "arguments": {"gen_args_0": {"arg_0": "d"}}},
    ]
    [system] = read_responses(rows)
    assert list(system.responses) == ["r", "s"]
    assert list(system.columns[inputs.CONTEXT]) == [["c"], ["d"]]
    assert list(system.columns[inputs.REFERENCE]) == [["t"], ["u"]]
    assert system.dialogues is not None
    assert list(system.dialogues) == ["7", "8"]


def test_both_of_two_paths_without_what_is_empty() -> None:
    rows = [{"instruction": "a", "input": given, "output": "b"} for given in ("c", "", None)]
    [system] = read_responses(rows)
    assert list(system.columns[inputs.CONTEXT]) == [["a", "c"], ["a"], ["a"]]


def test_our_own_names_count_beside_a_shape_but_not_its_system_prompt() -> None:
    row: dict[str, object] = {
        "conversations": [{"from": "gpt", "value": "a"}],
        "system": "Be kind.",
        "reference": "b",
        "dialog_id": "d",
    }
    assert map_fields(row, FieldNames()) == {"messages": row["conversations"], "reference": "b", "dialog_id": "d"}
    mapped = FieldNames.of({"reference": "gold"})
    sample: dict[str, object] = {"doc": {}, "resps": [["r"]], "target": "t", "gold": "g", "doc_id": 1}
    found = map_fields(sample, mapped)
    assert found is not None
    assert found["gold"] == "g"


def given_as(rows: list[dict[str, Any]], folder: Path) -> list[Any]:
    """The same rows as a list, as lines of JSON and as a table."""
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [rows, folder / "rows.parquet", folder / "rows.jsonl"]


DEEPEVAL = {
    "input": "q",
    "actual_output": "a",
    "expected_output": "r",
    "context": ["k", "l"],
    "retrieval_context": ["m"],
}


def test_what_deepeval_retrieved_is_no_conversation(tmp_path: Path) -> None:
    for given in given_as([DEEPEVAL, {**DEEPEVAL, "input": "p"}], tmp_path):
        [system] = read_responses(given)
        assert list(system.responses) == ["a", "a"]
        assert list(system.columns[inputs.CONTEXT]) == [["q"], ["p"]]
        assert list(system.columns[inputs.REFERENCE]) == [["r"], ["r"]]


def test_nor_is_it_where_the_response_is_named_by_hand(tmp_path: Path) -> None:
    for given in given_as([DEEPEVAL, DEEPEVAL], tmp_path):
        with collect_warnings() as notes:
            [system] = read_responses(given, {"response": "actual_output"})
        assert inputs.CONTEXT not in system.columns
        assert list(notes) == ["the field context of a test case of deepeval is not a conversation and was ignored"]
        with collect_warnings() as notes:
            [system] = read_responses(given, {"response": "actual_output", "context": "retrieval_context"})
        assert list(system.columns[inputs.CONTEXT]) == [["m"], ["m"]]
        assert not notes


def test_an_answer_that_is_written_once_per_filter_is_read_once(tmp_path: Path) -> None:
    def sample(number: int, name: str, filtered: str) -> dict[str, Any]:
        answer = {"doc_id": number, "doc": {"q": "?"}, "target": "9", "resps": [[f"answer {number}"]]}
        return {**answer, "filter": name, "filtered_resps": [filtered], "arguments": [["?", "x"]]}

    rows = [sample(n, name, f"{name} {n}") for name in ("strict-match", "flexible-extract") for n in range(300)]
    for given in given_as(rows, tmp_path):
        [system] = read_responses(given)
        assert list(system.responses) == [f"answer {n}" for n in range(300)]
        assert system.account.dropped == 300
    repeated = [sample(0, "none", "a"), sample(0, "none", "a")]
    assert len(read_responses(repeated)[0]) == 2, "the same filter: the program wrote it twice"
    [chosen] = read_responses(rows, {"response": "filtered_resps.0"})
    assert len(chosen) == 600


def test_a_row_that_has_our_fields_is_left_alone() -> None:
    row: dict[str, object] = {"response": "a", "doc": {}, "resps": [["b"]]}
    assert map_fields(row, FieldNames()) is row
    answer: dict[str, object] = {"answer": "a", "conversations": []}
    assert map_fields(answer, FieldNames.of({"response": "answer"})) is answer


def test_a_mapping_may_lead_into_objects() -> None:
    rows = [{"output": {"text": "a"}, "meta": {"gold": "g", "kind": "k"}}]
    [system] = read_responses(rows, {"response": "output.text", "reference": "meta.gold"}, keep=["meta.kind"])
    assert list(system.responses) == ["a"]
    assert list(system.columns[inputs.REFERENCE]) == [["g"]]
    assert list(system.fields["meta.kind"]) == [["k"]]


@pytest.mark.parametrize("response", ["response", "answer"])
def test_a_mapping_may_lead_into_objects_beside_a_plain_response(response: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{response: "a", "meta": {"gold": "g", "id": 7}}, {response: "b", "meta": {"id": 8}}]
    names = {"reference": "meta.gold", "dialog_id": "meta.id", "response": response}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for given in (rows, tmp_path / "rows.parquet", tmp_path / "rows.jsonl"):
        [system] = read_responses(given, names)
        assert list(system.responses) == ["a", "b"]
        assert list(system.columns[inputs.REFERENCE]) == [["g"], []]
        assert list(system.dialogues or []) == ["7", "8"]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"doc": {}, "target": "t"}, "looks like a sample of lm-evaluation-harness, but lacks resps"),
        ({"prompt": "a"}, "looks like a prompt with its completion, but lacks completion"),
        ({"prompt": "a", "answer": "b"}, "has no field 'response', only prompt, answer"),
        ({"payload": {"note": "It leaves at nine."}, "uid": 1}, "has no field 'response', only payload, uid"),
        ({"epoch": 1, "input": "a"}, "looks like a sample of an inspect_ai log, but lacks output"),
        ({"question": "a", "output": "b"}, "has no field 'response', only question, output"),
        ({"text": "a"}, "has no field 'response', only text"),
    ],
)
def test_what_an_unknown_row_looks_like(row: dict[str, Any], what: str, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses([row]))
    assert problem.what.startswith(what)
    assert explain_shape(row, FieldNames.of({"response": "answer"})) is None, "a mapping by hand is taken at its word"


@pytest.mark.parametrize(
    ("row", "errors"),
    [
        ({"doc": {}, "resps": []}, 0),
        ({"custom_id": "r", "response": {"status_code": 429, "body": {"error": {"code": "rate"}}}}, 1),
        ({"custom_id": "r", "response": None, "error": {"code": "batch_expired"}}, 1),
        ({"custom_id": "r", "result": {"type": "errored"}}, 1),
        ({"id": 1, "epoch": 1, "input": "a", "output": {"choices": []}, "error": {"message": "limit"}}, 1),
        ({"instruction": "a", "output": None}, 0),
        ({"prompt": {"raw": "a"}, "response": {"error": "refused"}, "error": "refused"}, 1),
    ],
)
def test_a_reply_that_a_program_does_not_have_failed(row: dict[str, Any], errors: int) -> None:
    [system] = read_responses([row])
    assert (system.account.errors, system.account.without_reply) == (errors, 1 - errors)


def test_headers_of_tables() -> None:
    assert {"conversations", "arguments", "instruction", "input", "resps"} <= list_columns()


def test_documents() -> None:
    chat: dict[str, object] = {"messages": [{"role": "user", "content": "a"}]}
    assert is_row(chat)
    assert not is_row({"messages": ["a", "b"]}), "responses of a system of that name"
    assert not is_row({"prompt": ["a"], "completion": ["b"]}), "two systems"
    assert is_row({"prompt": "a", "completion": "b"})
    assert find_document_rows({"eval": {}, "samples": [], "version": 2}) == ("samples", [])
    assert find_document_rows({"samples": []}) is None


@pytest.mark.parametrize("tasks", [5, True, "t", {"id": "0"}, [], [3], [{"id": "1"}]])
def test_a_log_whose_list_to_join_is_no_list_of_matches_is_read(tasks: Any) -> None:
    shape = next(shape for shape in SHAPES if shape.joined)
    found = find_document_rows({"tasks": tasks, "info": {}, "simulations": [shape.example, "x"]})
    assert found == ("simulations", [shape.example | {"info": {}}, "x"])


BY_NAME = {shape.name: shape for shape in SHAPES}


def test_numbers_in_paths() -> None:
    row = {"a": ["x", "y"], "b": ("z",)}
    paths = ("a.0", "a.1", "a.2", "b.0", "b.1", "a.00", "a.000000001", "a.0000000001", "a.²", "a.x", "a.0.0")
    assert [value_at(row, path) for path in paths] == ["x", "y", None, "z", None, "x", "y", None, None, None, None]


def test_the_first_path_and_both_of_two() -> None:
    row: dict[str, object] = {"a": None, "b": 0, "c": "x", "d": "", "e": {"f": [1]}}
    assert find(row, "a | b") == 0
    assert find(row, "c | b") == "x"
    assert find(row, "a | z") is None
    assert find(row, "c & b") == ["x", 0]
    assert find(row, "a & c & d") == ["x"]
    assert find(row, "a & d") is None
    assert find(row, "a & d | c") == "x"
    assert find(row, "e.f.0&c") == [1, "x"]


def test_words_about_shapes() -> None:
    assert BY_NAME["sharegpt"].origin == "read in a real file"
    assert BY_NAME["inspect"].origin == "read in a real file: inspect_ai 0.3"
    assert BY_NAME["gemini"].origin == "from documentation, not read in a real file"
    assert (BY_NAME["lm-eval"].main, BY_NAME["sharegpt"].main, BY_NAME["arena-pair"].main) == (
        "resps.0.0",
        "conversations",
        "",
    )
    assert BY_NAME["mt-bench-pair"].explained == (
        "pairs, for `dialeval rank`: a = model_1; b = model_2; better = g1_winner & g2_winner; dialog_id = question_id"
    )
    assert BY_NAME["sharegpt"].explained == "messages = conversations; dialog_id = id"
    assert BY_NAME["inspect"].explained.startswith("rows in `samples`; response = output.choices.0.message | ")


def test_a_system_of_several_names_is_one() -> None:
    row = BY_NAME["tau2-bench"].example | {"info": {"agent_info": {"implementation": "agent", "llm": "m"}}}
    found = map_fields(row, FieldNames())
    assert found is not None
    assert found["system"] == "agent/m"
    found = map_fields(row | {"info": {"agent_info": {"llm": "m"}}}, FieldNames())
    assert found is not None
    assert found["system"] == "m"


def test_turns_of_one_row_are_rows_of_their_own() -> None:
    given = {"question_id": 1, "model_id": "m", "choices": [{"turns": ["a", "b"]}]}
    [rows] = read_responses([given])
    assert rows.turns is not None
    assert (rows.system, list(rows.responses), rows.turns.tolist()) == ("m", ["a", "b"], [1, 2])


def test_fields_of_our_names_that_mean_something_else() -> None:
    mapped = FieldNames.of({"response": "answer"})
    keys = [*BY_NAME["deepeval"].example, "context"]
    assert list_unlike(keys, mapped) == ["context"]
    assert list_unlike(keys, FieldNames()) == []
    assert list_unlike([key for key in keys if key != "context"], mapped) == []
    assert list_unlike(["context", "answer"], mapped) == []
    assert list_unlike(["context", "input", "span_kind"], mapped) == [], "the first sign counts"
    assert list_unlike(keys, FieldNames.of({"response": "answer", "context": "input"})) == []


def test_answers_that_are_repeated_for_a_filter() -> None:
    filters = Filters()
    sample = BY_NAME["lm-eval"].example | {"doc_hash": "h"}
    kinds = [(0, "a"), (0, "b"), (0, "a"), (1, "b"), (1, "b"), (1, None)]
    assert [filters.pass_over(sample | {"doc_id": number, "filter": name}) for number, name in kinds] == [
        *(False, True, False, False, False, True)
    ]
    assert not filters.pass_over(sample)
    unfiltered = Filters()
    assert not any(unfiltered.pass_over(row) for row in (sample, sample | {"filter": "a"}))
    assert not filters.pass_over({"type": "x", "filter": "y"})
    pairs: list[dict[str, object]] = [{"prompt": "a", "completion": "b", "filter": n, "x": n} for n in range(2)]
    assert not any(map(filters.pass_over, pairs)), "other programs have no filters"


def test_what_a_row_with_some_signs_looks_like() -> None:
    def looks(row: dict[str, Any]) -> str | None:
        found = explain_shape(row, FieldNames())
        return None if found is None else found[0]

    assert looks({"epoch": 1, "output": "a"}) == "looks like a sample of an inspect_ai log, but lacks input"
    assert looks({"epoch": 1}) is None, "two of three signs are missing"
    assert looks({"question": "a", "output": "b", "x": 1}) is None, "the first sign is missing"
    assert looks({"model_a": "x", "model_b": "y"}) is None, "nor is it what is not read"
    assert explain_shape({"doc": {}, "resps": [[]]}, FieldNames()) == (
        "looks like a sample of lm-evaluation-harness, but lacks resps.0.0",
        "give it what it lacks, or leave it out",
    )


def test_columns_that_shapes_look_at() -> None:
    columns = list_columns()
    assert {"response.body", "response", "choices.0.turns", "choices", "g1_winner", "trace_id", "span_kind"} <= columns
    assert {"filter", "doc_id", "doc_hash", "prompt_hash", "info.agent_info.llm", "info", "instruction"} <= columns
    assert columns.isdisjoint({"GENERATION", "LLM"}), "values of a column are none"
    assert not [name for name in columns if "|" in name or "&" in name or name != name.strip()]


def test_documents_that_give_their_rows_something() -> None:
    given = [{"epoch": 1}, {"epoch": 2, "eval": "own"}, "text"]
    rows = [{"eval": {"m": 1}, "epoch": 1}, {"eval": "own", "epoch": 2}, "text"]
    assert find_document_rows({"eval": {"m": 1}, "samples": given}) == ("samples", rows)
    assert find_document_rows({"eval": None, "samples": given}) is None
    assert find_document_rows({"eval": {}, "samples": "x"}) is None
    assert find_document_rows({"results": {"results": [1]}}) == ("results.results", [1])
    tasks = [{"id": 0, "t": "a"}, {"id": "1", "t": "b"}, 3]
    simulations = [{"task_id": "0"}, {"task_id": 1}, {"task_id": 2}, {"task_id": 1, "task": "own"}, "text"]
    assert find_document_rows({"tasks": tasks, "simulations": simulations}) == (
        "simulations",
        [
            {"task_id": "0", "task": tasks[0]},
            {"task_id": 1, "task": tasks[1]},
            {"task_id": 2},
            {"task_id": 1, "task": "own"},
            "text",
        ],
    )


def test_documents_that_are_one_row() -> None:
    assert is_row({"conversations": [{"from": "gpt", "value": "a"}]})
    assert is_row({"prompt": ["a"], "completion": "b"})
    assert not is_row({"messages": []})
    assert not is_row({"messages": "x"})
    assert not is_row({"messages": [{"role": "user"}, "x"]})
    assert not is_row({"messages": [{"role": "user"}, {"content": "x"}]})
    assert not is_row({"damd": ["a"], "ubar": "b"})
