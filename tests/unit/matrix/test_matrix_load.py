"""What the loader accepts, what it makes of it, and what it says of everything else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from matrix_samples import DOCUMENT, SCHEMAS, Placement, changed, load, load_text, problems, text_of

from orchestrator.matrix.quantities import duration_s, size_bytes
from orchestrator.matrix.types import Adaptive, Axes, CheckSettings, HostSettings, ModelFiles, Reserve, RunSettings
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind, Sampling, Workload
from orchestrator.schema.errors import MatrixError


def faults(tmp_path: Path, document: Any, **more: Any) -> list[str]:
    """Faults without their places."""
    return [problem.split(": ", 1)[1] for problem in problems(tmp_path, text_of(document), **more)]


def test_the_sample_comes_out_whole(tmp_path: Path) -> None:
    matrix = load(tmp_path, DOCUMENT)
    assert matrix.name == "sample"
    assert matrix.path == tmp_path / "matrix.yaml"
    assert matrix.text == text_of(DOCUMENT)
    server = {"threads": 2, "flash": "off", "place": Placement.CPU, "limits": None}
    assert matrix.engines == {
        "srv": EngineConfig("srv", "server", "srv-bin", None, {}, False, server),
        "lib": EngineConfig("lib", "library", None, "~/venv/bin/python", {}, False, {"step": 8}),
    }
    assert matrix.models["m"].files == {
        "srv": ModelFiles("files/m.gguf", {"small": "files/d.gguf"}, None, False),
        "lib": ModelFiles("demo:m", {"small": "/abs/d"}, None, False),
    }
    assert (matrix.models["m"].same_target, matrix.models["m"].weights_equivalent) == ("m", False)
    assert matrix.models["mtp-m"].files == {"srv": ModelFiles("files/x.gguf", {}, None, True)}
    assert matrix.methods == {
        "none": Method("none", MethodKind.NONE),
        "d4": Method("d4", MethodKind.DRAFT, 4, "small", {}),
        "mtp2": Method("mtp2", MethodKind.MTP, 2, None, {}),
        "ng": Method("ng", MethodKind.NGRAM, 8, None, {}),
    }
    assert matrix.sampling == {
        "greedy": Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
        "warm": Sampling("warm", 0.8, 11, 0, 0.95, 0.0, 1.0, 0.0, 0.0),
    }
    assert matrix.workloads == {"short": Workload("short", "demo-short", 64, EosPolicy.STOP)}
    assert matrix.axes == Axes(("srv", "lib"), ("m",), ("d4",), ("greedy", "warm"), ("short",))
    assert [one.axes for one in matrix.include] == [Axes(("srv",), ("mtp-m",), ("mtp2",), ("greedy",), ("short",))]
    line = text_of(DOCUMENT).split("\n").index("  - engine: srv") + 1
    assert matrix.include[0].where == f"{tmp_path}/matrix.yaml:{line}:5"
    assert matrix.exclude == ()
    assert matrix.run == RunSettings("standard", 4, 5, 8, "abba", 7, "cold", True, 120.0, 1800.0, 300.0)
    assert matrix.host == HostSettings((), "everyday")
    assert matrix.checks == CheckSettings(greedy_identity=True)
    assert matrix.language == "en"
    assert matrix.method_options == {
        ("srv", "d4"): {"p_min": 0.25},
        ("lib", "d4"): {"eager": False},
        ("srv", "mtp2"): {"p_min": 0.25},
    }


def test_defaults_are_told_from_what_is_written(tmp_path: Path) -> None:
    defaults = load(tmp_path, DOCUMENT).defaults
    assert {
        "sampling.greedy.seed",
        "sampling.greedy.top_k",
        "sampling.warm.min_p",
        "workloads.short.eos",
        "engines.srv.options.flash",
        "engines.srv.pin",
        "methods.d4.options.p_min",
        "methods.d4.options.eager",
        "models.m.srv.mtp",
        "models.m.weights_equivalent",
        "run.preset",
        "run.sessions",
        "run.timeout.silence",
        "host.environment",
        "checks.greedy_identity",
        "report.language",
    } <= defaults
    written = {
        "sampling.greedy.temperature",
        "sampling.warm.seed",
        "sampling.warm.top_p",
        "engines.srv.options.threads",
        "engines.lib.options.step",
        "models.m.srv.target",
        "models.m.same_target",
        "methods.d4.n_max",
    }
    assert not written & defaults


def test_every_setting_written_leaves_no_default_of_its_section(tmp_path: Path) -> None:
    run = {
        "preset": "quick",
        "sessions": 6,
        "trials": 2,
        "warmup": 0,
        "order": "random",
        "order_seed": 3,
        "cache": "cold",
        "twin": True,
        "phases": True,
        "adaptive": {"half_width": "1.5%", "max_sessions": 9},
        "confirm_winner": True,
        "force_fit": True,
        "timeout": {"silence": "90s", "total": "1h", "startup": 45},
    }
    matrix = load(tmp_path, changed("run", run))
    assert matrix.run == RunSettings(
        "quick", 6, 2, 0, "random", 3, "cold", True, 90.0, 3600.0, 45.0, phases=True,
        adaptive=Adaptive(0.015, 9), confirm_winner=True, force_fit=True,
    )  # fmt: skip
    assert not {path for path in matrix.defaults if path.startswith("run")}


@pytest.mark.parametrize(
    ("preset", "sessions", "trials", "warmup", "twin"),
    [("demo", 4, 3, 1, False), ("quick", 2, 3, 8, False), ("standard", 4, 5, 8, True), ("publish", 8, 3, 8, True)],
)
def test_presets(tmp_path: Path, preset: Any, sessions: Any, trials: Any, warmup: Any, twin: Any) -> None:
    run = load(tmp_path, changed("run/preset", preset)).run
    assert (run.preset, run.sessions, run.trials, run.warmup, run.twin) == (preset, sessions, trials, warmup, twin)


def test_phases_are_timed_in_publish_or_where_asked_for(tmp_path: Path) -> None:
    asked = {
        preset: load(tmp_path, changed("run", {"preset": preset})).run.phases
        for preset in ("demo", "quick", "standard", "publish")
    }
    assert asked == {"demo": False, "quick": False, "standard": False, "publish": True}
    assert load(tmp_path, changed("run", {"preset": "publish", "phases": False})).run.phases is False


def test_xtc_is_off_unless_written_and_has_no_meaning_at_temperature_zero(tmp_path: Path) -> None:
    plain = load(tmp_path, DOCUMENT).sampling["warm"]
    assert (plain.xtc_probability, plain.xtc_threshold) == (0.0, 0.1)
    written = {"temperature": 0.8, "xtc_probability": 0.5, "xtc_threshold": 0.2}
    found = load(tmp_path, changed("sampling/warm", written)).sampling["warm"]
    assert (found.xtc_probability, found.xtc_threshold) == (0.5, 0.2)
    (fault,) = faults(tmp_path, changed("sampling/greedy", {"temperature": 0, "xtc_probability": 0.5}))
    assert fault.startswith(
        "sampling.greedy.xtc_probability: XTC takes the best token away, temperature 0 always takes it"
    )


def test_an_odd_number_of_sessions_needs_a_random_order(tmp_path: Path) -> None:
    assert faults(tmp_path, changed("run", {"sessions": 3})) == [
        "run.sessions: order abba needs an even number of sessions, 3 is odd; change it, or write order: random"
    ]
    assert load(tmp_path, changed("run", {"sessions": 3, "order": "random"})).run.sessions == 3


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2min", 120),
        ("1h", 3600),
        ("1.5h", 5400),
        ("1h 30min", 5400),
        ("1h30min5s", 5405),
        (7, 7),
        (0.5, 0.5),
    ],
)
def test_durations(text: str, seconds: Any) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "2", "2 minutes", "2m", "-1s", "0s", 0, -1, True, None, "1e3s", "9" * 400 + "s", "90 s", "٣s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_s(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("12GiB", 12 * 2**30),
        ("8GB", 8 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("7B", 7),
        (5, 5),
    ],
)
def test_sizes(text: str, count: Any) -> None:
    assert size_bytes(text) == count


@pytest.mark.parametrize("text", ["", "8", "8gb", "8 G", "-1GB", "0B", 0, -1, 1.5, True, None, "0.1B", "GiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        size_bytes(text)


def test_the_hosts_reserve(tmp_path: Path) -> None:
    host = {"reserve": [{"name": "tools", "bytes": "12GiB"}, {"name": "b", "bytes": 4096}], "environment": "clean"}
    assert load(tmp_path, changed("host", host)).host == HostSettings(
        (Reserve("tools", 12 * 2**30), Reserve("b", 4096)), "clean"
    )


WRONG = [
    (
        "nmae",
        "x",
        [
            'nmae: unknown key "nmae"; did you mean "name"?; allowed: version, name, engines, models, methods, '
            "sampling, workloads, run, host, matrix, checks, report"
        ],
    ),
    ("name", ..., ['missing key "name"']),
    ("name", "a/b", ["name: a name begins with a letter or digit and holds only letters, digits and . _ + -"]),
    ("name", 7, ["name: must be a text; found the number 7"]),
    (
        "engines",
        {},
        ["engines: is empty; name at least one", "models.m: names no files for any engine; there are: none", ...],
    ),
    ("engines", [], ["engines: must be a mapping of names to their settings; found a list", ...]),
    (
        "engines/srv/adapter",
        "serve",
        ['engines.srv.adapter: no adapter "serve"; did you mean "server"?; there are: server, library'],
    ),
    ("engines/srv/adapter", ..., ['engines.srv: missing key "adapter"']),
    (
        "engines/srv/options/thread",
        1,
        [
            'engines.srv.options.thread: unknown key "thread"; did you mean "threads"?; '
            "allowed: threads, flash, place, limits"
        ],
    ),
    (
        "engines/srv/options/threads",
        0,
        ["engines.srv.options.threads: must be greater than or equal to 1; found the number 0"],
    ),
    ("engines/srv/options/threads", "4", ['engines.srv.options.threads: must be a whole number; found "4"']),
    (
        "engines/srv/options/place",
        "gpus",
        ['engines.srv.options.place: found "gpus"; did you mean "gpu"?; allowed: gpu, cpu'],
    ),
    ("engines/lib/options", ..., ['engines.lib.options: missing key "step"']),
    ("engines/srv/binary", "", ['engines.srv.binary: must not be empty; found ""']),
    ("engines/srv/binary", None, ["engines.srv.binary: has no value; write one, or take the key out"]),
    (
        "models/m/same_targt",
        "x",
        [
            'models.m.same_targt: "same_targt" is neither an engine of this file nor a key; did you '
            'mean "same_target"?; allowed: same_target, weights_equivalent, srv, lib'
        ],
    ),
    ("models/m/srv/target", ..., ['models.m.srv: missing key "target"']),
    (
        "models/m/srv/draft",
        "x",
        ['models.m.srv.draft: unknown key "draft"; did you mean "drafts"?; allowed: target, drafts, mtp'],
    ),
    (
        "models/m/srv/drafts/a b",
        "x",
        ["models.m.srv.drafts.a b: a name begins with a letter or digit and holds only letters, digits and . _ + -"],
    ),
    ("models/m/weights_equivalent", "yes", ['models.m.weights_equivalent: must be true or false; found "yes"']),
    (
        "methods/none",
        {"method": "none"},
        ['methods.none: the baseline "none" is built in and added by itself; take this entry out'],
    ),
    (
        "methods/d4/draft",
        ...,
        ['methods.d4: missing key "draft": the name, under drafts of the model, of the draft to use'],
    ),
    (
        "methods/ng/draft",
        "small",
        ["methods.ng.draft: only method draft uses a draft model, this is method ngram; take the key out"],
    ),
    ("methods/d4/n_max", ..., ['methods.d4: missing key "n_max"']),
    ("methods/d4/n_max", 0, ["methods.d4.n_max: must be greater than or equal to 1; found the number 0"]),
    ("methods/d4/n_max", 4.0, ["methods.d4.n_max: must be a whole number; found the number 4.0"]),
    (
        "methods/d4/method",
        "drafts",
        ['methods.d4.method: found "drafts"; did you mean "draft"?; allowed: draft, mtp, ngram'],
    ),
    (
        "methods/ng/options/p_mn",
        1,
        ['methods.ng.options.p_mn: for adapter server: unknown key "p_mn"; did you mean "p_min"?; allowed: p_min'],
    ),
    ("sampling/greedy/temperature", ..., ['sampling.greedy: missing key "temperature"']),
    ("sampling/greedy/top_p", 0, ["sampling.greedy.top_p: must be greater than 0; found the number 0"]),
    (
        "sampling/greedy/seed",
        2**31,
        ["sampling.greedy.seed: must be less than or equal to 2147483647; found the number 2147483648"],
    ),
    (
        "workloads/short/eos",
        "stopp",
        ['workloads.short.eos: found "stopp"; did you mean "stop"?; allowed: stop, continue, mask'],
    ),
    (
        "workloads/short/max_tokens",
        True,
        ["workloads.short.max_tokens: must be a whole number; found the boolean true"],
    ),
    ("run/preset", "fast", ['run.preset: found "fast"; allowed: demo, quick, standard, publish']),
    ("run/cache", "warm", ['run.cache: found "warm"; allowed: cold']),
    (
        "run/timeout/silence",
        "2m",
        [
            "run.timeout.silence: not a duration; write seconds as a number, or a text such as "
            '"90s", "2min", "1h"; found "2m"'
        ],
    ),
    (
        "host/reserve",
        [{"name": "x", "bytes": "8"}],
        [
            "host.reserve[0].bytes: not a size; write bytes as a whole number, or "
            'a text such as "12GiB" or "8GB"; found "8"'
        ],
    ),
    ("host", None, ["host: has no value; write one, or take the key out"]),
    ("report/language", "kr", ['report.language: found "kr"; did you mean "ko"?; allowed: en, ko']),
    (
        "checks/greedy",
        True,
        [
            'checks.greedy: unknown key "greedy"; did you mean "greedy_identity"?; allowed: greedy_identity, '
            "distribution, cross_scoring, memory_trial"
        ],
    ),
    (
        "matrix/axes/engine",
        ["srv", "libb"],
        ['matrix.axes.engine[1]: engines has no "libb"; did you mean "lib"?; there are: srv, lib'],
    ),
    (
        "matrix/axes/method",
        "d5",
        ['matrix.axes.method: methods has no "d5"; did you mean "d4"?; there are: d4, mtp2, ng, none'],
    ),
    (
        "matrix/axes/sampling",
        [0.8],
        ['matrix.axes.sampling[0]: must be a text; found the number 0.8 (for a text, write "0.8" in quotes)'],
    ),
    ("matrix/axes/model", [], ["matrix.axes.model: must hold at least one; found a list"]),
    ("matrix/axes/engine", ..., ['matrix.axes: missing key "engine"']),
    (
        "matrix/exclude",
        [{"why": "x"}],
        [
            "matrix.exclude[0]: names no axis, so it would take everything out; name one of: "
            "engine, model, method, sampling, workload"
        ],
    ),
    (
        "matrix/exclude",
        [{"engine": "svr"}],
        ['matrix.exclude[0].engine: engines has no "svr"; did you mean "srv"?; there are: srv, lib'],
    ),
    ("matrix/include/0/workload", ..., ['matrix.include[0]: missing key "workload"']),
    (
        "matrix/include/0/engine",
        ["srv", "lib"],
        [
            "matrix.include[0]: lib/mtp-m/mtp2/greedy/short cannot be formed: "
            "models.mtp-m names no files for engine lib (it has: srv)"
        ],
    ),
    (
        "matrix/include/0/model",
        "m",
        [
            "matrix.include[0]: srv/m/mtp2/greedy/short cannot be formed: method mtp2 needs an "
            "MTP module: give models.m.srv.mtp a path, or the word inside"
        ],
    ),
    (
        "matrix/include/0/method",
        "d4",
        [
            "matrix.include[0]: srv/mtp-m/d4/greedy/short cannot be formed: method d4 needs the "
            "draft small, which models.mtp-m.srv.drafts lacks (it has: none)"
        ],
    ),
    ("matrix", {}, ["matrix: names no cell to measure; give it axes, or include"]),
    ("matrix", ..., ['missing key "matrix"']),
    (
        "matrix/includes",
        [],
        ['matrix.includes: unknown key "includes"; did you mean "include"?; allowed: axes, exclude, include'],
    ),
]


@pytest.mark.parametrize(
    ("path", "value", "expected"), WRONG, ids=[f"{path}={value!r}"[:60] for path, value, _ in WRONG]
)
def test_each_fault_is_said_once_in_these_words(tmp_path: Path, path: str, value: Any, expected: Any) -> None:
    found = faults(tmp_path, changed(path, value))
    if expected[-1] is ...:
        assert set(expected[:-1]) <= set(found)
    else:
        assert found == expected


def test_all_faults_come_at_once_in_the_order_of_the_text(tmp_path: Path) -> None:
    document = changed("engines/srv/options/thread", 1)
    document["sampling"]["greedy"]["temperature"] = -1
    document["matrix"]["axes"]["workload"] = ["shrot"]
    document["methods"]["ng"]["n_max"] = 0
    del document["name"]
    text = text_of(document)
    found = problems(tmp_path, text)
    places = [tuple(map(int, problem.split(":")[1:3])) for problem in found]
    assert [problem.split(": ")[1] for problem in found] == [
        'missing key "name"',
        "engines.srv.options.thread",
        "methods.ng.n_max",
        "sampling.greedy.temperature",
        "matrix.axes.workload[0]",
    ]
    assert places == sorted(places)
    rows = text.split("\n")
    assert rows[places[1][0] - 1][places[1][1] - 1 :].startswith("thread: 1")
    assert rows[places[2][0] - 1][places[2][1] - 1 :] == "0"
    assert rows[places[3][0] - 1][places[3][1] - 1 :] == "-1"
    assert rows[places[4][0] - 1][places[4][1] - 1 :] == "shrot"


def test_the_message_is_all_problems_a_line_each(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, changed("run", {"sessions": 3, "cach": "cold"}))
    assert len(caught.value.problems) == 2
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all(problem.startswith(f"{tmp_path}/matrix.yaml:") for problem in caught.value.problems)


def test_a_fault_in_one_entry_does_not_make_its_name_unknown(tmp_path: Path) -> None:
    found = faults(tmp_path, changed("methods/d4/n_max", "four"))
    assert found == ['methods.d4.n_max: must be a whole number; found "four"']


@pytest.mark.parametrize("name", ["a b", "-a", ".a", "a/b", "a*", "a~twin", "a[1]", "é", "", "a?"])
@pytest.mark.parametrize("section", ["engines", "models", "methods", "sampling", "workloads"])
def test_names_that_would_not_do_in_an_id_are_refused(tmp_path: Path, section: Any, name: Any) -> None:
    document = changed("name", "sample")
    document[section][name] = next(iter(document[section].values()))
    found = [one for one in faults(tmp_path, document) if "a name begins with" in one]
    assert found == [
        f"{section}.{name}: a name begins with a letter or digit and holds only letters, digits and . _ + -"
    ]


@pytest.mark.parametrize("name", ["a", "0", "0.8", "llama.cpp", "A_b+c-d.1", "none-1"])
def test_names_that_do(tmp_path: Path, name: Any) -> None:
    document = changed("name", name)
    document["sampling"][name] = {"temperature": 1}
    assert load(tmp_path, document).sampling[name].name == name


@pytest.mark.parametrize("name", ["same_target", "weights_equivalent"])
def test_an_engine_cannot_have_the_name_of_a_models_key(tmp_path: Path, name: Any) -> None:
    document = changed("name", "sample")
    document["engines"][name] = copy.deepcopy(document["engines"]["srv"])
    assert f'engines.{name}: "{name}" is a key of models; give the engine another name' in faults(tmp_path, document)


def test_method_options_are_judged_by_each_adapter_the_method_meets(tmp_path: Path) -> None:
    document = changed("methods/d4/options", {"p_min": 0.5})
    assert faults(tmp_path, document) == [
        'methods.d4.options.p_min: for engine lib: unknown key "p_min"; allowed: eager'
    ]
    document["matrix"]["axes"]["engine"] = ["srv"]
    matrix = load(tmp_path, document)
    assert matrix.method_options["srv", "d4"] == {"p_min": 0.5}
    assert "methods.d4.options.p_min" not in matrix.defaults


def test_method_options_are_not_judged_where_exclude_keeps_the_method_away(tmp_path: Path) -> None:
    document = changed("methods/d4/options", {"p_min": 0.5})
    document["matrix"]["exclude"] = [{"engine": "lib", "method": "d4"}]
    assert list(load(tmp_path, document).method_options) == [("srv", "d4"), ("srv", "mtp2")]


def test_a_kind_that_the_adapter_lacks_is_no_fault(tmp_path: Path) -> None:
    document = changed("matrix/axes/method", ["ng"])
    document["matrix"]["axes"]["engine"] = ["lib"]
    matrix = load(tmp_path, document)
    assert matrix.method_options == {("srv", "mtp2"): {"p_min": 0.25}}


def test_options_of_a_method_without_cells_must_suit_some_adapter(tmp_path: Path) -> None:
    assert load(tmp_path, changed("methods/ng/options", {"p_min": 0.5})).methods["ng"].options == {"p_min": 0.5}
    assert load(tmp_path, changed("methods/unused", {"method": "mtp", "n_max": 1})).methods["unused"].n_max == 1


def test_options_may_be_null_where_their_schema_says_so(tmp_path: Path) -> None:
    assert load(tmp_path, changed("engines/srv/options/limits", None)).engines["srv"].options["limits"] is None
    found = faults(tmp_path, changed("engines/srv/options/limits", [1]))
    assert found
    assert all(one.startswith("engines.srv.options.limits: ") for one in found)


def test_prompt_sets_are_checked_only_when_they_are_given(tmp_path: Path) -> None:
    document = changed("workloads/short/prompts", "demo-shrt")
    assert load(tmp_path, document).workloads["short"].prompts == "demo-shrt"
    assert faults(tmp_path, document, prompt_sets=("demo-short", "long")) == [
        'workloads.short.prompts: no prompt set "demo-shrt"; did you mean "demo-short"?; there are: demo-short, long, or a '
        ".jsonl or .txt file, or a folder, written with a slash"
    ]
    assert load(tmp_path, changed("workloads/short/prompts", "own.txt"), prompt_sets=("long",)).name == "sample"


def test_a_matrix_of_baselines_needs_no_methods(tmp_path: Path) -> None:
    document = changed("methods")
    document["matrix"] = {"axes": {**DOCUMENT["matrix"]["axes"], "method": "none"}}
    assert list(load(tmp_path, document).methods) == ["none"]


def test_a_matrix_of_includes_needs_no_axes(tmp_path: Path) -> None:
    assert load(tmp_path, changed("matrix/axes")).axes is None


def test_nothing_left_to_measure_is_a_fault_with_a_reason(tmp_path: Path) -> None:
    document = changed("matrix/include")
    document["matrix"]["exclude"] = [{"method": ["d4"]}]
    assert faults(tmp_path, document) == ["matrix: no cell is left to measure"]
    document = changed("matrix/include")
    document["matrix"]["axes"] |= {"model": ["mtp-m"], "engine": ["lib"]}
    assert faults(tmp_path, document) == [
        "matrix: no cell is left to measure; first of 2 reasons: lib/mtp-m/d4/greedy/short: models.mtp-m names no files "
        "for engine lib (it has: srv)"
    ]


def test_a_product_beyond_reason_is_refused_without_being_counted_out(tmp_path: Path) -> None:
    document = changed("name", "sample")
    for section in ("methods", "sampling", "workloads"):
        entry = next(iter(document[section].values()))
        document[section] |= {f"x{i}": dict(entry) for i in range(60)}
        axis = {"methods": "method", "sampling": "sampling", "workloads": "workload"}[section]
        document["matrix"]["axes"][axis] = [f"x{i}" for i in range(60)]
    assert faults(tmp_path, document) == [
        "matrix.axes: comes to 432000 cells, more than the 10000 that are read; name fewer"
    ]


def test_exclude_keeps_its_reason(tmp_path: Path) -> None:
    document = changed("matrix/exclude", [{"engine": "lib", "sampling": ["warm"], "why": "no time"}])
    (one,) = load(tmp_path, document).exclude
    assert (one.engine, one.model, one.sampling, one.why) == (("lib",), None, ("warm",), "no time")


def test_the_schemas_are_all_that_is_known_of_adapters(tmp_path: Path) -> None:
    found = faults(tmp_path, changed("engines/lib/adapter", "mlx_lm"))
    assert found == [f'engines.lib.adapter: no adapter "mlx_lm"; there are: {", ".join(SCHEMAS)}']


def test_text_is_kept_as_read(tmp_path: Path) -> None:
    text = "# a comment\n" + text_of(DOCUMENT)
    assert load_text(tmp_path, text).text == text


def test_cross_scoring_is_made_in_publish_or_where_asked_for(tmp_path: Path) -> None:
    presets = {
        preset: load(tmp_path, changed("run", {"preset": preset})).checks.cross_scoring
        for preset in ("demo", "quick", "standard", "publish")
    }
    assert presets == {"demo": False, "quick": False, "standard": False, "publish": True}
    assert load(tmp_path, changed("checks", {"cross_scoring": True})).checks.cross_scoring is True
