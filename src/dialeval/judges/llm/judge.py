"""A language model as a judge: asks it about rows by a rubric, and keeps every answer.

    from dialeval.judges import LLM

    llm = LLM(endpoint="http://localhost:8000/v1", model="Qwen/Qwen2.5-7B-Instruct", rubric="reply", mode="grade")
    run = dialeval.evaluate("rows.jsonl", metrics="llm", llm=llm)

Requests are sent by threads, at most `concurrency` at a time; the batches of an evaluation share them. An answer that
was recorded is not asked for again (`answers.AnswerStore`), and with `replay=True` nothing is asked at all.

A run begins with single requests, until one is answered: three that are refused end it (`probe=False`: all are sent at
once). It also ends after 32 answers of which none has a grade.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from statistics import variance
from types import FrameType
from typing import Any, Literal, get_args

import orjson
from msgspec import MsgspecError

from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import refuse_link
from dialeval.core.rowtable import RUN_FILE
from dialeval.core.signature import name_family
from dialeval.judges.llm import rubrics
from dialeval.judges.llm.answers import AnswerRecord, AnswerStore
from dialeval.judges.llm.client import (
    FIRST_ATTEMPTS,
    FIRST_REQUESTS,
    Client,
    Counts,
    FailedRequestError,
    StoppedError,
    read_completion,
)
from dialeval.judges.llm.gateway import KEY_VARIABLE, Auth, Gateway, combine_presets
from dialeval.judges.llm.rubrics import Grades, Parts, Request, Rubric
from dialeval.metrics.registry import split_names

Mode = Literal["expected", "grade", "vote"]
ANSWERS_FILE = "llm-answers.sqlite"
"""The file of a saved run with the answers that it was made of."""
LEAST_MASS = 0.5
NOT_RECORDED = "the request is not recorded"
_METRICS = ("llm", "llm-conversation")


class Panel:
    """Several language models as judges of one evaluation, each with a column of its own: `llm(model=NAME)`.

    Args:
        judges: The judges, of different models; they record in one file.
    """

    def __init__(self, *judges: LLM) -> None:
        self.judges = {judge.model: judge for judge in judges}
        if len(self.judges) < len(judges) or not judges:
            raise SettingError("a panel has judges of different models")

    @property
    def digest(self) -> str:
        """The models, and the settings that grades depend on, apart from rubric and mode."""
        return " + ".join(judge.settings for judge in self.judges.values())

    @property
    def warnings(self) -> list[str]:
        """A warning for each system whose model is of the family of a judge."""
        return [
            f"the judge {judge.model} is of the same family as {model}, the model of {system}: judges tend to prefer "
            "answers of their own family"
            for judge in self.judges.values()
            for system, model in judge.systems.items()
            if name_family(model) == name_family(judge.model) != ""
        ]

    def judge(self, model: str) -> LLM:
        """Return the judge of a name; empty: the only one."""
        if not model and len(self.judges) == 1:
            return next(iter(self.judges.values()))
        if model not in self.judges:
            raise SettingError(f"name one of the judges: llm(model=NAME), with {', '.join(self.judges)}")
        return self.judges[model]

    def plan(self, metrics: Any, settings: Any) -> tuple[Any, dict[str, Any]]:
        """Return metrics and settings of an evaluation: rubric and mode, and for several judges a metric for each."""
        first, planned = next(iter(self.judges.values())), dict(settings or {})
        defaults = {name: value for name, value in first.defaults.items() if value is not None}
        chosen = {name: {**defaults, **planned.get(name, {})} for name in _METRICS}
        if len(self.judges) == 1:
            return metrics, planned | chosen
        asked: list[Any] = []
        for name in split_names(metrics) if isinstance(metrics, str) else metrics or ():
            variants = [{**chosen[name], "model": model} for model in self.judges] if name in chosen else []
            written = [",".join(f"{key}={value}" for key, value in variant.items()) for variant in variants]
            asked += [f"{name}({variant})" for variant in written] or [name]
        return asked, planned

    def describe(self) -> str:
        """Return what was sent and received, in a line."""
        return "; ".join(f"{model}: {judge.count()}" for model, judge in self.judges.items())

    def copy_answers(self, folder: str | os.PathLike[str]) -> None:
        """Write the answers that were used into a folder, as one file that can be replayed, unless it is there."""
        first, target = next(iter(self.judges.values())), Path(folder) / ANSWERS_FILE
        with closing(AnswerStore(first.cache, read_only=True)) as store:
            if not target.exists() or not target.samefile(store.path):
                store.copy(dict(ChainMap(*(judge.used for judge in self.judges.values()))), target)

    def check_folder(self, folder: str | os.PathLike[str]) -> None:
        """Raise DataError where the answers of a run would replace a file in its folder that is not of a run."""
        target, cache = Path(folder) / ANSWERS_FILE, next(iter(self.judges.values())).cache
        refuse_link(target)
        if target.exists() and not (cache is not None and Path(cache).exists() and target.samefile(cache)):
            AnswerStore(target, read_only=True).close()
            if not (target.parent / RUN_FILE).exists():
                what = "would be overwritten, but it is not of a run"
                raise DataError(Problem(str(target), None, what, "choose another folder, or move it away"))

    def __enter__(self) -> Panel:
        self._stack = ExitStack()
        for judge in self.judges.values():
            self._stack.enter_context(judge)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


class LLM(Panel):
    """A language model behind an OpenAI-compatible endpoint, as a judge.

    Args:
        endpoint: The address of the API, such as `http://localhost:8000/v1`; not needed for a replay.
        model: The name of the model, as the endpoint knows it.
        rubric: The name of a shipped rubric, or the path of a TOML file; None: that of the metric.
        mode: How grades are read: `expected`, `grade` or `vote`; None: `expected`.
        samples: Answers per row of the mode `vote`.
        options: Further fields of requests, or other values than theirs: `temperature` (0, and 1 for `vote`), `seed`,
            `max_tokens` (enough for the grades), `top_p`; None as a value removes a field.
        least_mass: The least probability of all grades together that an expected grade is made of.
        concurrency: Requests at a time.
        timeout: Seconds for a request with its whole answer.
        retries: How often a request that fails for a passing reason is sent again.
        backoff: Seconds of the first pause before that.
        max_requests: Budget of requests; the run ends when it is spent.
        max_total_tokens: Budget of tokens, of requests and answers together.
        prices: Prices of a million tokens, of requests and of answers, to show the cost.
        cache: The file of recorded answers; None: one in the cache folder.
        replay: Use recorded answers only; no connection is opened.
        key_variable: The environment variable with the key of the endpoint, if it needs one.
        presets: Kinds of servers, such as `azure` or `reasoning`, whose settings are the defaults of those here.
        auth: How the key is sent: `bearer`, `api-key` (a header of that name) or `none`; None: `bearer`.
        headers: Further headers of requests; `$NAME` in a value is an environment variable.
        ca: A file of further certificates to trust.
        served_model: The name of the model in answers, where a gateway has another one than requests.
        probe: Send single requests until one is answered, before all others.
        systems: The model behind each system, where it is known, to name a judge of the same family.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        model: str = "",
        *,
        rubric: str | os.PathLike[str] | None = None,
        mode: Mode | None = None,
        samples: int | None = None,
        options: Mapping[str, object] | None = None,
        least_mass: float = LEAST_MASS,
        concurrency: int = 16,
        timeout: float = 120.0,
        retries: int = 8,
        backoff: float = 0.5,
        max_requests: int | None = None,
        max_total_tokens: int | None = None,
        prices: tuple[float, float] | None = None,
        cache: str | os.PathLike[str] | None = None,
        replay: bool = False,
        key_variable: str = KEY_VARIABLE,
        systems: Mapping[str, str] | None = None,
        presets: Sequence[str] = (),
        auth: Auth | None = None,
        headers: Mapping[str, str] | None = None,
        ca: str | os.PathLike[str] | None = None,
        served_model: str = "",
        probe: bool = True,
    ) -> None:
        preset = combine_presets(presets)
        endpoint, mode = endpoint or preset.endpoint, mode or preset.mode
        if preset.options and mode == "expected":
            raise SettingError(
                f"{', '.join(presets)}: reasoning models return no probabilities; choose --llm-mode grade"
            )
        if not model.strip() or any(letter in "(),=" or letter.isspace() for letter in model):
            raise SettingError("name the model of the judge; a name has no spaces, commas, brackets or =")
        if endpoint is None and not replay:
            raise SettingError("name the endpoint (--llm-endpoint), or use recorded answers only (--llm-replay)")
        if samples is not None and mode != "vote":
            raise SettingError("several answers per row (--llm-samples) are for the mode vote: --llm-mode vote")
        if mode not in (None, *get_args(Mode)):
            raise SettingError(f"the mode is one of {', '.join(get_args(Mode))}, not {mode!r}")
        if not 1 <= concurrency <= 1024 or not 0 < timeout <= 86_400 or retries < 0 or not 0 <= least_mass <= 1:
            what = "timeout above 0 and at most 86,400 (a day)"
            raise SettingError(f"concurrency is 1 to 1024, {what}, retries from 0 on, least_mass from 0 to 1")
        try:
            orjson.dumps(options)
        except TypeError as error:
            raise SettingError(f"options of a language model are no JSON ({error})") from None
        self.model, self.prices, self.replay, self.systems = model, prices, replay, dict(systems or {})
        super().__init__(self)
        self.changed: Callable[[], None] | None = None
        self.defaults = {"rubric": None if rubric is None else os.fspath(rubric), "mode": mode, "samples": samples}
        self._options, self.cache = {**preset.options, **(options or {})}, cache
        self._least_mass, self._concurrency = least_mass, concurrency
        limits = (timeout, retries, backoff, max_requests, max_total_tokens)
        place = "http://replay.invalid" if replay or endpoint is None else endpoint
        sent = ("none", {}, None) if replay else (auth or preset.auth or "bearer", headers or {}, ca)
        self._client = Client(Gateway(place, key_variable, *sent), model, served_model, *limits)
        self._probing = threading.Lock()
        self._probe = probe
        self._graded, self._ungraded = 0, list[str]()
        self.report: Callable[[str], object] | None = None
        """Called with what the first answer shows of the endpoint."""
        self._client.changed = lambda: self.changed and self.changed()
        self._lock = threading.Lock()
        self._open_store: AnswerStore | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[str, Future[AnswerRecord]] = {}
        self.used: dict[str, AnswerRecord | None] = {}
        """The keys of requests of a run, with the record of those that failed: another run may answer them later."""
        self._error: BaseException | None = None
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    @property
    def settings(self) -> str:
        """The model and the settings that grades depend on."""
        options = orjson.dumps(self._options, option=orjson.OPT_SORT_KEYS).decode()
        served = f"={self._client.served_model}" if self._client.served_model else ""
        least = f"{self._least_mass:g}"
        return f"{self.model}{served},prompt={rubrics.PROMPT},least_mass={least},options={options}"

    def describe_endpoint(self) -> str:
        """Return where requests go and with which headers, without secrets."""
        return "POST /chat/completions" if self.replay else self._client.gateway.describe()

    @property
    def counts(self) -> Counts:
        """What was sent and received so far."""
        return self._client.counts

    def grade(self, rubric: Rubric, rows: Sequence[Parts], mode: Mode = "grade", samples: int = 1) -> list[Grades]:
        """Return the grades of rows, each the texts of a request.

        Args:
            rubric: What is asked.
            rows: The texts of each request.
            mode: How grades are read.
            samples: Answers per row of the mode `vote`.

        Returns:
            The grades of each row, or the reason why it has none.
        """
        samples = samples if mode == "vote" else 1
        requests = [request for parts in rows for request in self.requests(rubric, parts, mode, samples)]

        def read(record: AnswerRecord) -> Grades:
            return self._read(rubric, record, mode)

        grades = list(map(read, self.answers(requests, read)))
        if mode != "vote":
            return grades
        return [_vote(grades[start : start + samples]) for start in range(0, len(grades), samples)]

    def requests(self, rubric: Rubric, parts: Parts, mode: Mode, samples: int = 1) -> list[Request]:
        """Return the requests about some texts."""
        about = (rubric, parts, self.model, mode, self._options)
        return [rubrics.make_request(*about, number) for number in range(samples)]

    def _read(self, rubric: Rubric, record: AnswerRecord, mode: Mode) -> Grades:
        try:
            if record.answer is None:
                return Grades({}, (record.reason or "").partition(":")[0])
            answer = read_completion(record.answer)
        except (MsgspecError, TypeError, UnicodeError, RecursionError):
            return Grades({}, "the recorded answer is damaged")
        if mode == "expected":
            return rubrics.compute_expected_grades(rubric, answer, self._least_mass)
        return rubrics.parse_grades(rubric, answer)

    def answers(self, requests: Sequence[Request], read: Callable[[AnswerRecord], Grades]) -> list[AnswerRecord]:
        """Return the recorded answers to requests; send those that have none, and wait for them.

        `read` returns the grades of an answer, by which a run notices that it gets none.
        """
        store, keys = self._store(), [request.key for request in requests]
        sent = self._send_first(requests, read)
        records = store.find(list(dict.fromkeys(keys)), failures=self.replay)
        self.counts.recorded += len(records.keys() - sent)
        records |= {key: failure for key in keys if (failure := self.used.get(key)) is not None}
        missing = {request.key: request for request in requests if request.key not in records}
        if self.replay:
            records |= {key: AnswerRecord(key, b"", None, NOT_RECORDED) for key in missing}
            self.used |= dict.fromkeys(keys)
            return [records[key] for key in keys]
        futures: dict[str, Future[AnswerRecord]] = {}
        try:
            futures = {key: self._submit(request, read) for key, request in missing.items()}
            records |= {key: future.result() for key, future in futures.items()}
        except BaseException as error:
            for future in futures.values():
                future.cancel()
            raise self._find_reason(error) from None
        self.used |= {key: record if record.answer is None else None for key, record in records.items()}
        return [records[key] for key in keys]

    def _find_reason(self, error: BaseException) -> BaseException:
        """Send nothing more, and return why the run ends: for a request that was not sent any more, what ended it."""
        self.stop(error)
        return (self._error or KeyboardInterrupt()) if isinstance(error, StoppedError | CancelledError) else error

    def _send_first(self, requests: Sequence[Request], read: Callable[[AnswerRecord], Grades]) -> set[str]:
        """Send single requests until one is answered, and return their keys; SettingError where none of three is."""
        sent = set[str]()
        with self._probing:
            if self.counts.answers or self.replay or not self._probe:
                return sent
            recorded = self._store().find([request.key for request in requests])
            for request in requests:
                if request.key in recorded or request.key in self.used or request.key in sent:
                    continue
                start = time.monotonic()
                try:
                    record = self._submit(request, read).result()
                except BaseException as error:
                    raise self._find_reason(error) from None
                sent.add(request.key)
                if record.answer is not None:
                    self._report_first(record, read(record), time.monotonic() - start)
                    break
                self.used[request.key] = record
                if self.counts.requests >= FIRST_ATTEMPTS:
                    self._client.refuse_silence()
        return sent

    def _report_first(self, record: AnswerRecord, grades: Grades, seconds: float) -> None:
        if self.report is not None and record.answer is not None:
            answer = read_completion(record.answer)
            tokens = "token probabilities" if answer.tokens else "no token probabilities"
            form = "the JSON object asked for" if grades.reason is None else grades.reason
            name = self._client.gateway.quote(answer.model or "a model without a name")
            self.report(f"{name} answered the first request in {seconds:.1f} s: {form}, {tokens}")

    def _submit(self, request: Request, read: Callable[[AnswerRecord], Grades]) -> Future[AnswerRecord]:
        """Send a request in a thread, unless it is on its way."""
        with self._lock:
            if request.key in self._running:
                return self._running[request.key]
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._concurrency, "llm")
            future = self._running[request.key] = self._pool.submit(self._send, request, read)
        future.add_done_callback(lambda _: self._running.pop(request.key, None))
        return future

    def _send(self, request: Request, read: Callable[[AnswerRecord], Grades]) -> AnswerRecord:
        try:
            record = AnswerRecord(request.key, request.body, self._client.send(request.body))
        except FailedRequestError as error:
            record = AnswerRecord(request.key, request.body, None, str(error))
        except BaseException as error:
            self.stop(error)
            raise
        record = self._store().store(record)
        if record.answer is not None and not self._graded:
            try:
                self._count_grades(record.answer, read(record))
            except SettingError as error:
                self.stop(error)
                raise
        return record

    def _count_grades(self, answer: bytes, grades: Grades) -> None:
        """Count an answer; SettingError where the first ones have no grade."""
        with self._lock:
            self._graded += grades.reason is None
            if self._graded:
                return
            with suppress(MsgspecError, TypeError, UnicodeError, RecursionError):
                shown = self._client.gateway.quote(read_completion(answer).text)
                self._ungraded.append(f"{grades.reason}: {shown!r}")
            if len(self._ungraded) < FIRST_REQUESTS:
                return
        examples = "".join(f"\n  {example}" for example in self._ungraded[:3])
        what = f"none of the first {FIRST_REQUESTS} answers of {self.model} has a grade"
        raise SettingError(f"{what}, so that the run ends (docs/llm-judges.md, Problems). The first ones:{examples}")

    def _store(self) -> AnswerStore:
        with self._lock:
            if self._open_store is None:
                self._open_store = AnswerStore(self.cache, self.replay)
            return self._open_store

    def stop(self, error: BaseException | None = None) -> None:
        """Send nothing more; answers that are on their way are still recorded, on Ctrl-C those of a short time."""
        if self._error is None and not isinstance(error, StoppedError | CancelledError):
            self._error = error
        self._client.stop(soon=isinstance(error, KeyboardInterrupt))

    def count(self) -> str:
        """Return what was sent and received, in one line."""
        counts, cost = self.counts, self.counts.compute_cost(self.prices)
        more = {"sent again": counts.repeated, "failed": counts.failed, "recorded before": counts.recorded}
        parts = [f"{counts.requests:,} requests", *(f"{number:,} {what}" for what, number in more.items() if number)]
        parts.append(f"{counts.prompt_tokens:,} + {counts.completion_tokens:,} tokens")
        return ", ".join([*parts, *([] if cost is None else [f"cost {cost:,.4f}"])])

    def __enter__(self) -> LLM:
        """Stop sending on Ctrl-C and SIGTERM, so that the threads of an evaluation end."""
        self.used = {}
        first = threading.current_thread() is threading.main_thread() and not self._handlers
        for number in (signal.SIGINT, signal.SIGTERM) if first else ():
            if callable(before := signal.getsignal(number)):
                self._handlers[number] = before
                signal.signal(number, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.stop(KeyboardInterrupt())
        self._handlers[number](number, frame)

    def __exit__(self, *error: object) -> None:
        """Wait for answers that are on their way, and release threads, connections, signals and the file.

        Raises:
            SettingError: Requests were sent, and none was answered.
        """
        try:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        finally:
            self._client.close()  # after another signal, requests are still on their way
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            for number, before in self._handlers.items():
                signal.signal(number, before)
            self._handlers = {}
            if self._open_store is not None:
                self._open_store.close()
            self._pool = self._open_store = None
        if not any(error) and not self.counts.recorded:
            self._client.refuse_silence()


def _vote(several: Sequence[Grades]) -> Grades:
    """Return the mean grades of several answers; none unless more than half of them could be read."""
    read = [grades for grades in several if grades.reason is None]
    if 2 * len(read) <= len(several):
        return Grades({}, next(grades.reason for grades in several if grades.reason is not None))
    means = {name: math.fsum(grades.values[name] for grades in read) / len(read) for name in read[0].values}
    first = [next(iter(grades.values.values())) for grades in read]
    noise = variance(first) / len(read) if len(read) > 1 else math.nan
    return Grades(means, unwrapped=any(grades.unwrapped for grades in read), noise=noise)
