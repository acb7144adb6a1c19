"""The pages for users of other programs: their commands run, imports and claims hold, and no flag is left out."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

import dialeval
from dialeval import sample_data
from dialeval.cli.compat import compat
from dialeval.cli.main import main
from docs.folders import other_programs

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "migrate.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
QUOTED = re.findall(r"`([^`]+)`", PROSE)
COMMANDS = list(dict.fromkeys(text for text in QUOTED if re.match(r"dialeval \S+ [^A-Z]", text)))
ELSEWHERE = ("dialeval data add ", "dialeval score rows.jsonl -m adem", "dialeval compare ", "dialeval table ")
"""Commands that download, need a model, or another command first; other tests run them."""
IMPORTS = [text for text in QUOTED if text.startswith("from dialeval")]
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)}
DOORS = {
    "dialog-eval": "dialog-eval",
    "mwzeval": "MultiWOZ evaluation (mwzeval)",
    "lsdscc": "LSDSCC",
    "dbdc": "DBDC (eval.py)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("migrate")
    other_programs(made)
    return made


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) > 25
    assert all(any(text.startswith(f"dialeval compat {door} ") for text in COMMANDS) for door in DOORS)


@pytest.mark.parametrize("command", [text for text in COMMANDS if not text.startswith(ELSEWHERE)])
def test_commands(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    shutil.rmtree("results", ignore_errors=True)  # another command saved a run of other inputs there
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, capsys.readouterr().err


def test_the_lines_for_adem_run(folder: Path) -> None:
    """Blocks of the page hold the lines for other programs, and `test_pages` runs them."""
    pytest.importorskip("torch")
    vectors = [[0.5, 0.25]]
    names: dict[str, object] = {
        "train_session": None, "learning_rate": 0.1, "human_score": [3.0],
        **dict.fromkeys(("context_dim", "model_response_dim", "reference_response_dim"), 2),
        **dict.fromkeys(("context", "model_response", "reference_response"), vectors),
    }  # fmt: skip
    lines = re.findall(r"`((?:from dialeval.originals.adem import ADEM|model = |model.train).*?)`", PROSE)
    assert len(lines) == 4
    for line in lines:
        exec(line, names)


@pytest.mark.golden
def test_no_line_of_the_documents_is_left_out(shared_data: Path) -> None:
    code = r"\s*\$?((?:from \w+ import|python |[a-z_]+ = (?:[A-Z]\w+|e)[.(]|print\(|compute_|model\.).*)"
    known = {line.replace("'", '"') for line in (*QUOTED, *PAGE.splitlines())}
    seeds = [path.read_text("utf-8").replace("'", '"') for path in sorted((shared_data.parent / "seeds").glob("*.md"))]
    found = {match[1] for text in seeds for line in text.splitlines() if (match := re.fullmatch(code, line))}
    assert len(found) > 20
    assert found - known == set()


@pytest.mark.parametrize("line", IMPORTS)
def test_imports(line: str) -> None:
    if ".adem" in line:
        pytest.importorskip("torch")
    exec(line, {})


@pytest.mark.parametrize("door", DOORS)
def test_every_flag_of_a_door_is_on_the_page(door: str) -> None:
    command = compat.commands[door]
    named = re.findall(r"`([^`]+)`", SECTIONS[DOORS[door]])
    for parameter in command.params:
        if isinstance(parameter, click.Option) and "--data" not in parameter.opts:
            assert set(parameter.opts) <= set(named), parameter.name


def test_every_metric_that_is_named_is_one() -> None:
    from dialeval.metrics.registry import registry

    for names in re.findall(r"-m '?([^`' ]+)'?", " ".join(COMMANDS)):
        assert registry().select(names)
    kinds = r"(precision|recall|f1|jsd|mse|bleu|nlg-bleu|embedding|distinct)-\S+|\S+-(entropy|kl-div)"
    for text in filter(re.compile(kinds).fullmatch, QUOTED):
        assert text in registry().presets, text


def test_figures_that_are_said_to_be_equal_are() -> None:
    import sacrebleu
    from nltk.translate import bleu_score, nist_score

    from dialeval.originals.lsdscc.align import NLTKNistAligner

    responses = (sample_data.folder() / "responses" / "careful.txt").read_text().splitlines()
    references = (sample_data.folder() / "references.txt").read_text().splitlines()
    asked = "bleu-1,bleu-2,bleu-4,nlg-bleu(per=corpus),chrf(per=corpus),chrf(words=2,per=corpus),bleu(by=sacre)"
    found = dialeval.evaluate(responses, references, metrics=asked)["system"]
    pairs = [([reference.split()], response.split()) for reference, response in zip(references, responses, strict=True)]
    smooth = bleu_score.SmoothingFunction().method4
    for n in (1, 2, 4):
        scores = [bleu_score.sentence_bleu(*pair, (1 / n,) * n, smoothing_function=smooth) for pair in pairs]
        assert found[f"bleu-{n}"].scores == pytest.approx(scores, rel=1e-9)
    corpus = bleu_score.corpus_bleu([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    assert found["nlg-bleu(per=corpus)"].mean == pytest.approx(corpus, rel=1e-6)
    for name, words in {"chrf(per=corpus)": 0, "chrf(words=2,per=corpus)": 2}.items():
        chrf = sacrebleu.corpus_chrf(responses, [references], word_order=words).score
        assert found[name].mean == pytest.approx(chrf / 100, rel=1e-9)
    split = sacrebleu.metrics.BLEU(effective_order=True, tokenize="none")
    scores = [
        split.sentence_score(*pair).score / 100 for pair in zip(responses, [[r] for r in references], strict=True)
    ]
    assert found["bleu(by=sacre)"].scores == pytest.approx(scores, rel=1e-9)
    left, right = pairs[0]
    assert NLTKNistAligner(2)(right, left) == pytest.approx(nist_score.sentence_nist(left, right, 2))
