"""The mlx-vlm adapter on captures and folders alone: refusals in words, claims, and answers that contradict themselves."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import pytest
from golden_cases import GOLDEN, load_case
from vlm_session import BARE, GREEDY, NONE, WARM, make_cell, mtp

from adapters.mlx_vlm.adapter import ADAPTER
from orchestrator.demo.export import resolve
from orchestrator.matrix.build import ModelFiles
from orchestrator.schema.adapter import EngineIdentity, Honoured, LaunchContext, ProbeOutput, Rule, Verified
from orchestrator.schema.capture import RawEvent, TrialCapture
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence
from orchestrator.schema.replay import ReplaySpec, Width
from orchestrator.schema.status import Status

IDENTITY = EngineIdentity(version="0.7.10")
CHECKED = {"mlx-vlm": "0.7.10"}


@pytest.fixture(scope="module")
def folders() -> tuple[Path, Path]:
    return resolve("tiny-mtp-vlm-f16"), resolve("tiny-mtp-vlm-drafter-f16")


def write_model(folder: Path, tensors: tuple[str, ...] = (), **told: object) -> Path:
    """A model folder of headers alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    header = {
        name: {"dtype": "F16", "shape": [1], "data_offsets": [2 * at, 2 * at + 2]} for at, name in enumerate(tensors)
    }
    text = json.dumps(header).encode()
    if tensors:
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(2 * len(tensors)))
    return folder


def reason(cell, status=Status.UNSUPPORTED) -> str:
    refusal = ADAPTER.supports(cell, IDENTITY)
    assert refusal is not None
    assert refusal.status is status
    assert refusal.remedy
    return refusal.reason


def test_what_the_demo_has_is_supported(folders):
    target, drafter = folders
    for method in (NONE, mtp(1), mtp(4)):
        for sampling in (GREEDY, WARM):
            assert ADAPTER.supports(make_cell(target, drafter, method=method, sampling=sampling), IDENTITY) is None
    assert ADAPTER.verified is Verified.REAL_RUN


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repeat_penalty": 1.1}, "applies penalties to the first token alone"),
        ({"presence_penalty": 0.5}, "applies penalties to the first token alone"),
        ({"xtc_probability": 0.5}, "no XTC"),
        ({"top_p": 0.0}, "reads 0 as off"),
        ({"min_p": 1.5}, "min_p 1.5"),
        ({"top_k": 5000}, "vocabulary's 1024 tokens"),
        ({"temperature": -1.0}, "temperature -1"),
    ],
)
def test_samplers_that_would_not_be_what_was_asked_are_refused(folders, changes, words):
    sampling = dataclasses.replace(WARM, **changes)
    assert words in reason(make_cell(*folders, method=mtp(2), sampling=sampling))


def test_a_baseline_may_have_penalties(folders):
    sampling = dataclasses.replace(WARM, repeat_penalty=1.1)
    assert ADAPTER.supports(make_cell(*folders, sampling=sampling), IDENTITY) is None
    nothing = dataclasses.replace(WARM, repeat_penalty=0.0)
    assert "reads 0 as off" in reason(make_cell(*folders, sampling=nothing))


def test_seeding_by_position_has_no_min_p(folders):
    assert "leaves its seeding by position out" in reason(make_cell(*folders, sampling=WARM, seeding="position"))
    assert ADAPTER.supports(make_cell(*folders, sampling=BARE, seeding="position"), IDENTITY) is None
    spec = ReplaySpec(0, "p", (1,), (0,), Width.SINGLE, full=False)
    assert ADAPTER.replay_steps(make_cell(*folders, sampling=BARE, seeding="position"), spec)
    filtered = dataclasses.replace(BARE, top_k=40)
    with pytest.raises(ValueError, match="another order"):
        ADAPTER.replay_steps(make_cell(*folders, sampling=filtered, seeding="position"), spec)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Method("d", MethodKind.DRAFT, 4, "small"), "not with a draft model"),
        (Method("n", MethodKind.NGRAM, 4), "no n-gram drafter"),
        (Method("m", MethodKind.MTP, 0), "n_max is 0"),
        (Method("m", MethodKind.MTP), "n_max is None"),
    ],
)
def test_methods_that_it_has_not_are_refused(folders, method, words):
    assert words in reason(make_cell(*folders, method=method))


def test_a_binary_and_unknown_options_are_refused(folders):
    cell = make_cell(*folders)
    binary = dataclasses.replace(cell, engine=dataclasses.replace(cell.engine, binary="/usr/bin/true"))
    assert "a Python package" in reason(binary)
    assert "options" in reason(make_cell(*folders, seeding="nonsense"))


def test_target_folders_that_it_cannot_read_are_refused(tmp_path):
    assert "is a GGUF file" in reason(make_cell("/models/a.gguf", None))
    assert "no such folder" in reason(make_cell(tmp_path / "gone", None), Status.UNAVAILABLE)
    (tmp_path / "empty").mkdir()
    assert "config.json cannot be read" in reason(make_cell(tmp_path / "empty", None), Status.UNAVAILABLE)
    assert "names no model_type" in reason(make_cell(write_model(tmp_path / "a"), None))
    foreign = write_model(tmp_path / "b", model_type="x", model_file="x.py")
    assert "its own code (x.py)" in reason(make_cell(foreign, None))


def test_drafters_that_would_be_dropped_or_taken_for_something_else_are_refused(folders, tmp_path):
    target = folders[0]
    llama = write_model(tmp_path / "llama", model_type="llama", hidden_size=128)
    assert "its model_type is llama, which is no MTP drafter" in reason(make_cell(target, llama, method=mtp(2)))
    assert ADAPTER.supports(make_cell(target, llama), IDENTITY) is None  # a baseline does not open it
    for told in ({"backbone_hidden_size": 64}, {"text_config": {"hidden_size": 64}}):
        small = write_model(tmp_path / "small", model_type="qwen3_5_mtp", **told)
        found = reason(make_cell(target, small, method=mtp(2)))
        assert "hidden size 64" in found
        assert "go on without speculation" in found
    assistant = write_model(tmp_path / "gemma", model_type="gemma4_assistant", backbone_hidden_size=128)
    assert ADAPTER.supports(make_cell(target, assistant, method=mtp(2)), IDENTITY) is None
    assert "no such folder for the drafter" in reason(make_cell(target, "/gone", method=mtp(2)), Status.UNAVAILABLE)


@pytest.mark.parametrize("named", [False, True])
def test_a_module_inside_the_target_must_be_there(folders, tmp_path, named):
    def cell(folder: Path):
        return make_cell(folder, folder if named else None, method=mtp(2))

    assert "takes no MTP module out of a qwen3_5_text" in reason(cell(folders[0]))
    without = write_model(tmp_path / "a", ("model.norm.weight",), model_type="qwen3_5", text_config={"hidden_size": 8})
    assert "no tensor of the MTP module (mtp.*)" in reason(cell(without))
    inside = write_model(tmp_path / "b", ("mtp.fc.weight",), model_type="qwen3_5", text_config={"hidden_size": 8})
    assert ADAPTER.supports(cell(inside), IDENTITY) is None
    config = json.loads(next(iter(ADAPTER.launch(cell(inside), LaunchContext(0, tmp_path)).files.values())))
    assert config["drafter"] == config["target"] == str(inside)
    broken = write_model(tmp_path / "c", model_type="qwen3_5")
    assert "headers of its weights cannot be read" in reason(cell(broken), Status.UNAVAILABLE)


def test_claims_go_as_far_as_was_measured(folders, tmp_path):
    target, drafter = folders
    base, cell = make_cell(target, drafter), make_cell(target, drafter, method=mtp(2))
    assert (ADAPTER.exactness(base, IDENTITY).rule, ADAPTER.exactness(base, IDENTITY).exact) == (Rule.NONE, True)
    found = ADAPTER.exactness(cell, IDENTITY)
    assert (found.rule, found.exact) == (Rule.GREEDY_MATCH, True)
    warm = dataclasses.replace(cell, sampling=WARM)
    assert (ADAPTER.exactness(warm, IDENTITY).rule, ADAPTER.exactness(warm, IDENTITY).exact) == (
        Rule.SAMPLE_MATCH,
        True,
    )
    for version in (None, "0.7.11"):
        assert ADAPTER.exactness(cell, EngineIdentity(version=version)).exact is None
    gemma = write_model(tmp_path / "gemma", model_type="gemma4_assistant")
    other = ADAPTER.exactness(make_cell(target, gemma, method=mtp(2)), IDENTITY)
    assert other.exact is None
    assert "gemma4_assistant" in other.note
    punished = dataclasses.replace(cell, sampling=dataclasses.replace(GREEDY, repeat_penalty=1.1))
    assert ADAPTER.exactness(punished, IDENTITY).exact is False
    draft = make_cell(target, drafter, method=Method("d", MethodKind.DRAFT, 4, "x"))
    assert ADAPTER.exactness(draft, IDENTITY).rule is Rule.UNKNOWN


def test_the_probe_tells_versions_or_how_to_get_the_engine():
    config = EngineConfig("vlm", "mlx_vlm", python="/opt/python")
    (probe,) = ADAPTER.probe_commands(config)
    assert probe.argv[:2] == ("/opt/python", "-I")
    line = json.dumps({"mlx": "0.32.4", "mlx_vlm": "0.7.10", "python": "3.12.1", "device": "Device(cpu, 0)"})
    found = ADAPTER.identify(config, {"import": ProbeOutput(0, line + "\n", "")})
    assert found.facts.items() >= CHECKED.items()
    assert (found.version, found.backend, found.gpu_limit_bytes) == ("0.7.10", "cpu", None)
    metal = ProbeOutput(0, line.replace("}", ', "gpu_limit": 115448725504}'), "")
    assert ADAPTER.identify(config, {"import": metal}).gpu_limit_bytes == 115_448_725_504
    gone = ADAPTER.identify(config, {"import": ProbeOutput(1, "", "ModuleNotFoundError: No module named 'mlx_vlm'\n")})
    assert "No module named 'mlx_vlm'" in (gone.unavailable or "")
    assert "/opt/python -m pip install 'mlx-vlm==0.7.10'" in (gone.unavailable or "")


def altered(name: str, **changes: object):
    """The golden case's cell and its trial with other fields in the worker's answer; dots reach into objects."""
    case = load_case(GOLDEN / "mlx_vlm" / name)
    capture = case.trial_of(case.capture())
    step = capture.steps["generate"]
    done = json.loads(step.events[-1].data)
    for path, value in changes.items():
        *way, last = path.split("__")
        place = done
        for key in way:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value
    events = (RawEvent(step.events[-1].t_s, json.dumps(done)),)
    return case.cell, TrialCapture(0, {"generate": dataclasses.replace(step, events=events)}, complete=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"speculation__line": "Speculative decoding: 1.50 accepted tokens over 16 rounds"}, "cannot be read"),
        (
            {"speculation__line": lambda line: line.replace("over 16 rounds", "over 17 rounds")},
            "its record of the rounds",
        ),
        ({"speculation__line": None}, "cannot be read"),
        ({"speculation__counters": [16, 15, 31]}, "counters say (16, 15, 31)"),
        ({"speculation__capacity": lambda sizes: sizes[:-1]}, "the size of 15 blocks and the end of 16"),
        ({"effective__block_size": 5}, "blocks of 5, the cell says 3"),
        ({"told_ids": lambda ids: ids[:-1]}, "or they are not the same"),
        ({"trial": 3}, "answered trial 3"),
    ],
)
def test_an_answer_that_contradicts_itself_says_so(changes, words):
    cell, capture = altered("mtp-k2", **changes)
    assert words in "; ".join(ADAPTER.parse_trial(cell, capture).problems)


@pytest.mark.parametrize(
    "changes",
    [
        {"speculation__accepted": lambda lens: lens[:-1]},
        {"speculation__proposed": lambda lens: [*lens, 2]},
        {"speculation__accepted": lambda lens: [3, *lens[1:]]},
        {"speculation__proposed": lambda lens: [0, *lens[1:]]},
        {"speculation": None},
        {"tokens": lambda rows: [[token, at, max(number, 1)] for token, at, number in rows]},
        {"tokens": []},
        {"t1": 0.0},
    ],
)
def test_rounds_that_mlx_vlm_cannot_have_made_give_no_number(changes):
    cell, capture = altered("mtp-k2", **changes)
    with pytest.raises(CaptureError):
        ADAPTER.parse_trial(cell, capture)
    assert ADAPTER.arrivals(cell, capture) is None


def test_a_capacity_that_was_not_used_is_not_counted_as_drafted():
    """Some drafters stop early: mlx-vlm divides by what it asked for, and we by what came."""

    def sizes(line: str) -> str:
        return line.replace("51.6%", "50.0%").replace("avg draft 1.94", "avg draft 2.00")

    cell, capture = altered(
        "mtp-k2",
        speculation__capacity=[2] * 16,
        speculation__counters=lambda told: [told[0], told[1], 32],
        speculation__line=sizes,
    )
    parsed = ADAPTER.parse_trial(cell, capture)
    assert parsed.problems == ()
    found = {item.metric: item for item in parsed.observations}
    assert found["drafted_tokens"].value == 31
    assert (found["draft_capacity"].value, found["draft_capacity"].definition) == (32, "mlx-vlm:0.7.10:draft_lens")
    assert found["acceptance_rate"].value == 16 / 31
    assert found["capacity_acceptance_rate"].value == 16 / 32
    assert found["judged_acceptance_rate"].value == 16 / 30


def test_blocks_that_came_shorter_than_asked_are_a_changed_condition():
    cell, capture = altered("mtp-k2", speculation__proposed=lambda lens: [max(size - 1, 1) for size in lens])
    found = {one.name: one for one in ADAPTER.conditions(cell, capture)}
    assert (found["draft_length"].requested, found["draft_length"].effective) == ("2", "1")
    assert found["draft_length"].verdict is Honoured.CHANGED


def test_a_mask_that_was_left_out_is_a_changed_condition():
    cell, capture = altered("mtp-k2", effective__sampler="mlx-vlm's")
    found = {one.name: one for one in ADAPTER.conditions(cell, capture)}
    assert found["end_of_text"].verdict is Honoured.CHANGED
    masked = dataclasses.replace(cell, workload=dataclasses.replace(cell.workload, eos=EosPolicy.STOP))
    other = {one.name: one for one in ADAPTER.conditions(masked, altered("mtp-k2")[1])}
    assert other["end_of_text"].verdict is Honoured.CHANGED


def test_golden_rounds_are_what_the_engine_said():
    expected = {
        "mtp-all-refused": (7, 0, 4, 4),
        "mtp-one-token": (0, 0, 0, 0),
    }
    for name, counts in expected.items():
        cell, capture = altered(name)
        found = {item.metric: item for item in ADAPTER.parse_trial(cell, capture).observations}
        names = ("drafted_tokens", "accepted_tokens", "rejected_tokens", "verify_rounds")
        assert tuple(found[metric].value for metric in names) == counts
    assert found["acceptance_rate"].absent is Absence.NOT_APPLICABLE


def test_memory_counts_the_drafters_own_weights(folders, tmp_path):
    target, drafter = folders
    cell = make_cell(target, drafter, method=mtp(2))
    need, alone = ADAPTER.memory(cell), ADAPTER.memory(make_cell(target, drafter))
    parts = {part.what: part for part in need.parts}
    assert need.unknown == ()
    assert parts["draft weights"].size == 2 * 197_312
    assert parts["draft KV cache"].size == 2 * 256 * 1 * 2 * 32 * 4
    assert need.increase == need.total - alone.total > 0
    assert parts["program"].size == 106_000_000
    assert [part.what for part in alone.parts] == [part.what for part in need.parts if not part.speculation]
    together = write_model(
        tmp_path / "inside", ("model.a.weight", "mtp.fc.weight"), **json.loads((target / "config.json").read_text())
    )
    found = {part.what: part.size for part in ADAPTER.memory(make_cell(together, None, method=mtp(2))).parts}
    assert (found["weights"], found["draft weights"]) == (2, 2)
    assert ADAPTER.memory(make_cell(target, "/gone", method=mtp(2))).unknown
    assert ADAPTER.unmapped(cell).cell is cell


def test_a_model_may_have_its_module_inside():
    """The matrix's word ``inside`` comes as no path of its own: the target's folder is then hashed once, and opened."""
    assert ModelFiles("/t", {}, None, mtp_inside=True).mtp is None
    cell = make_cell("/models/t", None, method=mtp(2))
    assert cell.files == ("/models/t",)
