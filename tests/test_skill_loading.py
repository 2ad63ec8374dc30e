"""SKILL.md files of all kinds: what loads, what is said about it, what the profiles make of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime import Failure
from reread.skills import CODES, Skill, Skills, front_matter, simple, validate
from reread.skills.seed import held, violations
from reread.skills.skill import parse
from reread.skills.values import Refused

DATA = Path(__file__).parent / "data" / "skills"
MANIFEST: dict[str, Any] = json.loads((DATA / "manifest.json").read_text("utf-8"))
CASES = pytest.mark.parametrize("case", MANIFEST["cases"], ids=lambda case: case["id"])
BODY = "\n# Title\n\nDo it.\n"
SEED = "name: a\ndescription: does it\ntriggers:\n  - do it\nreferences: []\n"


def scanned(root: Path) -> Skills:
    found = Skills(root)
    found.scan()
    return found


def said(root: Path, folder: str) -> list[str]:
    return [one.code for one in scanned(root).diagnostics if one.path.split("/")[1] == folder]


def write(root: Path, name: str, front: str, body: str = BODY) -> Path:
    (root / name).mkdir(parents=True, exist_ok=True)
    file = root / name / "SKILL.md"
    file.write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    return file


def read(front: str, body: str = BODY, folder: str = "a") -> Skill | None:
    return parse(f"---\n{front}---\n{body}".encode(), folder=folder, path="SKILL.md").skill


def codes(front: str, body: str = BODY, folder: str = "a") -> set[str]:
    parsed = parse(f"---\n{front}---\n{body}".encode(), folder=folder, path="SKILL.md")
    return {one.code for one in parsed.diagnostics}


class TestTheHandedCases:
    @CASES
    def test_the_standard_profile_says_exactly_this(self, case: Any) -> None:
        file = DATA / case["id"] / case["skill"]
        found = scanned(DATA / case["id"] / "skills")
        wanted = case["standard"]
        assert set(said(found.roots[0].path, file.parent.name)) - {"W-REF-MISSING"} - {
            "W-NAME-COLLISION"
        } == set(wanted["codes"])
        loads = [one.name for one in found.skills if one.folder == file.parent.name]
        assert loads == ([wanted["name"]] if wanted["result"] != "error" else [])

    @CASES
    def test_the_seed_profile_takes_and_refuses_the_same(self, case: Any) -> None:
        file = DATA / case["id"] / case["skill"]
        data = file.read_bytes()
        parsed = parse(data, folder=file.parent.name, path="SKILL.md")
        broken = violations(parsed, size=len(data), folder=file.parent.name, path="SKILL.md")
        first = next(broken, None)
        assert (f"reject:{first.reason}" if first else "accept") == case["seed"]

    @CASES
    def test_the_strict_profile_takes_only_what_has_no_warning(self, case: Any) -> None:
        file = DATA / case["id"] / case["skill"]
        (verdict,) = validate(file, "standard-strict")
        clean = not any(code[0] in "EW" for code in case["standard"]["codes"])
        missing = {one.code for one in verdict.wrong} == {"W-REF-MISSING"}
        assert (not verdict.wrong or missing) == clean

    @CASES
    def test_what_the_seed_profile_takes_loads_the_same_under_the_standard(self, case: Any) -> None:
        file = DATA / case["id"] / case["skill"]
        data = file.read_bytes()
        parsed = parse(data, folder=file.parent.name, path="SKILL.md")
        strict = held(parsed, "seed", size=len(data), folder=file.parent.name, path="SKILL.md")
        if strict.skill:
            assert strict.skill == parsed.skill

    def test_one_bad_skill_does_not_hide_its_neighbours(self) -> None:
        assert scanned(DATA / "C66-one-bad-neighbour" / "skills").names == ("word-count",)

    def test_of_two_skills_of_one_name_both_can_be_reached(self) -> None:
        found = scanned(DATA / "C67-same-name-twice" / "skills")
        assert found.names == ("word-count", "zz-copy")
        assert [one.code for one in found.diagnostics if one.path.startswith("skills/zz")] == [
            "W-NAME-DIR",
            "W-NAME-COLLISION",
        ]


class TestFrontMatterIsRead:
    @pytest.mark.parametrize("value", ["no", "3000", "12306", "2024-01-01", "1e3", "on", "0x1f"])
    def test_a_scalar_is_the_text_that_stands_there(self, value: str) -> None:
        found = read(f"name: {value}\ndescription: x\n", folder=value)
        assert found is not None
        assert found.name == value

    def test_a_description_keeps_characters_that_split_lines_elsewhere(self) -> None:
        body = "\n# T\n\none\x0ctwo\u2028three\n"
        parsed = parse(f"---\n{SEED}---\n{body}".encode(), folder="a", path="p")
        assert parsed.body == body

    @pytest.mark.parametrize(
        ("front", "code"),
        [
            ("name: a\ndescription: x\ndescription: y\n", "E-DUP-KEY"),
            ("name: a\ndescription: &x y\n", "E-YAML-ALIAS"),
            ("name: a\ndescription: *x\n", "E-YAML-ALIAS"),
            ("name: a\ndescription: !!python/object:os.system x\n", "E-YAML-TAG"),
            ("name: a\ndescription: !x y\n", "E-YAML-TAG"),
            ("- a\n- b\n", "E-FM-NOT-MAPPING"),
            ("just words\n", "E-FM-NOT-MAPPING"),
            ("name: a\ndescription: ~\n", "E-DESC-MISSING"),
            ("name: a\ndescription: null\n", "E-DESC-MISSING"),
            ("name: a\ndescription: '  '\n", "E-DESC-MISSING"),
            ("name: a\ndescription: {x: y}\n", "E-DESC-TYPE"),
            ("name: a/../b\ndescription: x\n", "E-NAME-UNSAFE"),
            ('name: "a\u200bb"\ndescription: x\n', "E-NAME-UNSAFE"),
            ("name: a\ndescription: x\u2028y\n", "E-CONTROL"),
            ("name: a\ndescription: x\x85y\n", "E-CONTROL"),
            ("name: a\nx: " + "[" * 12 + "]" * 12 + "\n", "E-YAML-LIMIT"),
            ("name: a\nx: [" + "a," * 5000 + "]\n", "E-YAML-LIMIT"),
            ("name: a\nx: " + "y" * 40_000 + "\n", "E-YAML-LIMIT"),
            ("name: a\n? [b]\n: c\ndescription\n", "E-YAML"),
        ],
    )
    def test_what_is_refused_says_why(self, front: str, code: str) -> None:
        assert read(front) is None
        assert code in codes(front)

    @pytest.mark.parametrize(
        ("front", "code", "description"),
        [
            ("name: a\ndescription: Use: when asked\n", "W-YAML-REPAIRED", "Use: when asked"),
            ("name: a\ndescription: [x] y\n", "W-YAML-REPAIRED", "[x] y"),
            ("name: a\ndescription: **Bold** text\n", "W-YAML-REPAIRED", "**Bold** text"),
            ('name: a\ndescription: "x" and y\n', "W-YAML-REPAIRED", '"x" and y'),
            (
                "name: a\ndescription: x: y\n  and z\nlicense: MIT\n",
                "W-YAML-REPAIRED",
                "x: y and z",
            ),
            ("name: a\ndescription: @x does\n", "W-YAML-REPAIRED", "@x does"),
            ("name: a\ndescription: first\nunindented rest\n", "W-YAML-SALVAGED", None),
        ],
    )
    def test_what_can_be_mended_loads_with_a_warning(
        self, front: str, code: str, description: str | None
    ) -> None:
        found = read(front)
        assert found is not None
        assert code in codes(front)
        assert description is None or found.description == description

    def test_a_mended_value_keeps_the_other_keys_and_the_lines(self) -> None:
        front = "name: a\ndescription: x: y\n  z\nlicense: MIT\nmodel: m\n"
        parsed = parse(f"---\n{front}---\n{BODY}".encode(), folder="a", path="p")
        assert parsed.skill is not None
        assert parsed.skill.fields == {"license": "MIT", "model": "m"}
        unknown = next(one for one in parsed.diagnostics if one.code == "W-UNKNOWN-FIELD")
        assert unknown.line == 6

    @pytest.mark.parametrize(
        ("front", "triggers"),
        [
            ("triggers: [a b, c d]\n", ("a b", "c d")),
            ("triggers: one text\n", ("one text",)),
            ("metadata:\n  triggers: a b, c d、画图\n", ("a b", "c d", "画图")),
            ("metadata:\n  triggers: [a b]\n", ("a b",)),
        ],
    )
    def test_triggers_are_found_where_people_put_them(
        self, front: str, triggers: tuple[str, ...]
    ) -> None:
        found = read(f"name: a\ndescription: x\n{front}")
        assert found is not None
        assert found.triggers == triggers

    @pytest.mark.parametrize(
        ("value", "tools"),
        [
            ("Read Bash(git *) Write", ("Read", "Bash(git *)", "Write")),
            ("Read, Bash(git:*)", ("Read", "Bash(git:*)")),
            ("[Read, Write]", ("Read", "Write")),
        ],
    )
    def test_allowed_tools_are_read_in_every_form(self, value: str, tools: tuple[str, ...]) -> None:
        found = read(f"name: a\ndescription: x\nallowed-tools: {value}\n")
        assert found is not None
        assert found.allowed_tools == tools

    def test_a_broken_byte_says_in_which_line(self) -> None:
        parsed = parse(b"---\nname: a\ndescription: \xff\n---\n", folder="a", path="p")
        assert [(one.code, one.line) for one in parsed.diagnostics] == [("E-ENCODING", 3)]

    def test_a_file_over_the_limit_is_not_parsed(self) -> None:
        parsed = parse(b"x" * ((1 << 20) + 1), folder="a", path="p")
        assert [one.code for one in parsed.diagnostics] == ["E-TOO-LARGE"]

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=200))
    def test_no_bytes_make_it_fail(self, data: bytes) -> None:
        parsed = parse(b"---\n" + data + b"\n---\n", folder="a", path="p")
        assert parsed.skill or parsed.diagnostics
        assert all(one.code in CODES for one in parsed.diagnostics)


LINES = st.sampled_from(
    [
        "name: a",
        "name: no",
        "description: it is: odd",
        "description: x # c",
        "triggers:",
        "  - alpha",
        "- beta",
        "  - yes",
        '  - "a, b"',
        "metadata:",
        "  author: bob",
        '  version: "1"',
        "triggers: [a, b c]",
        "triggers: []",
        "y:",
        "z: a:",
        "w: foo  ",
        "v: ~",
        "u: null",
        "s: é à",
        "  t: off",
        "r: [yes]",
        "o: a]",
        "n: x%y",
        "k: [a,]",
        "i: it's",
        "on: x",
        "d: ",
        "  text",
        'q: "a: b"',
        'p: "a" b',
        "h: a\tb",
        "g: -",
        "f: a, b",
        "e: [ a ]",
        "c: a\\b",
    ]
)


class TestTheShortcutSaysWhatYamlSays:
    @settings(max_examples=600, deadline=None)
    @given(st.lists(LINES, min_size=1, max_size=6))
    def test_whatever_it_reads_is_the_same(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        quick = simple.read(text, 2)
        if quick is not None:
            assert quick == front_matter.read_yaml(text, 2)

    def test_it_leaves_to_yaml_what_it_does_not_know(self) -> None:
        assert simple.read("name: |\n  a", 2) is None
        with pytest.raises(Refused):
            front_matter.read("a: 1\na: 2", 2)


class TestTheSeedProfile:
    def check(self, front: str, body: str = BODY) -> str:
        data = f"---\n{front}---\n{body}".encode()
        parsed = parse(data, folder="a", path="p")
        first = next(violations(parsed, size=len(data), folder="a", path="p"), None)
        return first.reason if first else ""

    def test_the_form_of_the_tutorial_passes(self) -> None:
        assert self.check(SEED) == ""

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ("name: a", "name: A", "name"),
            ("name: a", "name: b", "name"),
            ("  - do it", "  - x", "triggers"),
            ("  - do it", '  - " do it"', "triggers"),
            ("  - do it", "  - 12", "triggers"),
            ("  - do it", f"  - {'x' * 81}", "triggers"),
            ("references: []", "references: [a, b, c, d, e]", "references"),
            ("references: []\n", "", "fields"),
            ("references: []", "references: []\nlicense: MIT", "fields"),
            ("description: does it", "description: 3", "description"),
            ("description: does it", "description: a: b", "yaml"),
            ("description: does it", "description: &d does it", "yaml"),
        ],
    )
    def test_each_rule_is_held(self, old: str, new: str, reason: str) -> None:
        assert self.check(SEED.replace(old, new)) == reason

    def test_a_comment_in_a_code_block_is_no_heading(self) -> None:
        assert self.check(SEED, "\n```sh\n# not a title\n```\n") == "body"
        assert self.check(SEED, "\n```sh\n# not a title\n```\n\n# A title\n") == ""


class TestValidation:
    def test_a_skill_of_the_four_keys_is_held_to_the_seed(self, tmp_path: Path) -> None:
        write(tmp_path, "a", SEED.replace("do it", "x"))
        (verdict,) = validate(tmp_path)
        assert (verdict.profile, verdict.wrong[0].code) == ("seed", "E-SEED-TRIGGERS")

    def test_any_other_skill_is_held_to_the_standard(self, tmp_path: Path) -> None:
        write(tmp_path, "a", "name: a\ndescription: x\nversion: 1\n")
        (verdict,) = validate(tmp_path)
        assert (verdict.profile, verdict.wrong) == ("standard", ())

    def test_every_skill_of_a_tree_is_found(self, tmp_path: Path) -> None:
        for place in ("x/a", "x/y/b", ".claude/skills/c", "node_modules/d", ".git/e"):
            write(tmp_path, place, f"name: {place[-1]}\ndescription: x\n")
        assert [one.name for one in validate(tmp_path)] == ["c", "a", "b"]

    def test_a_place_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(Failure) as caught:
            list(validate(tmp_path / "none"))
        assert caught.value.code == "path_not_found"


class TestScanning:
    def test_only_folders_directly_in_the_root_are_skills(self, tmp_path: Path) -> None:
        write(tmp_path, "a", SEED)
        write(tmp_path, "deep/b", "name: b\ndescription: x\n")
        write(tmp_path, "a/inner", "name: inner\ndescription: x\n")
        assert scanned(tmp_path).names == ("a",)
        assert said(tmp_path, "deep") == ["I-NESTED-SKILL"]
        assert "I-NESTED-SKILL" in said(tmp_path, "a")

    def test_hidden_folders_and_dependencies_are_left_out(self, tmp_path: Path) -> None:
        for name in (".a", "node_modules", "__pycache__"):
            write(tmp_path, name, SEED)
        found = scanned(tmp_path)
        assert (found.names, found.diagnostics) == ((), ())

    def test_another_case_of_the_file_name_is_read_with_a_warning(self, tmp_path: Path) -> None:
        write(tmp_path, "a", SEED).rename(tmp_path / "a" / "Skill.md")
        assert scanned(tmp_path).names == ("a",)
        assert "W-FILENAME-CASE" in said(tmp_path, "a")

    def test_a_link_out_of_the_roots_is_refused_and_said(self, tmp_path: Path) -> None:
        write(tmp_path / "outside", "b", SEED.replace("name: a", "name: b"))
        root = tmp_path / "skills"
        root.mkdir()
        (root / "b").symlink_to(tmp_path / "outside" / "b")
        assert scanned(root).names == ()
        assert said(root, "b") == ["E-LINK-OUTSIDE"]

    def test_a_link_into_a_root_is_followed_and_said(self, tmp_path: Path) -> None:
        write(tmp_path, "b", "name: b\ndescription: x\n")
        (tmp_path / "c").symlink_to(tmp_path / "b")
        found = scanned(tmp_path)
        assert found.names == ("b", "c")
        assert "I-LINK-FOLLOWED" in [one.code for one in found.diagnostics]

    def test_a_linked_file_is_not_read(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a", SEED)
        file.rename(tmp_path / "elsewhere.md")
        file.symlink_to(tmp_path / "elsewhere.md")
        assert scanned(tmp_path).names == ()
        assert said(tmp_path, "a") == ["E-UNREADABLE"]

    def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        os.mkfifo(tmp_path / "a" / "SKILL.md")
        assert said(tmp_path, "a") == ["E-UNREADABLE"]

    def test_a_missing_root_holds_no_skills(self, tmp_path: Path) -> None:
        assert scanned(tmp_path / "none").names == ()

    def test_each_scan_is_counted_and_replaces_the_registry(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a", SEED)
        found = scanned(tmp_path)
        file.unlink()
        write(tmp_path, "b", "name: b\ndescription: x\n")
        assert found.scan() == 1
        assert (found.names, found.scans) == (("b",), 2)

    def test_a_file_that_changed_is_read_again(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a", "name: a\ndescription: one\n")
        found = scanned(tmp_path)
        file.write_text("---\nname: a\ndescription: two\n---\n", "utf-8")
        found.scan()
        assert found.skills[0].description == "two"

    def test_a_reference_that_appears_is_noticed_without_reading_the_skill(
        self, tmp_path: Path
    ) -> None:
        write(tmp_path, "a", SEED.replace("references: []", "references: [references/x.md]"))
        (tmp_path / "a" / "references").mkdir()
        found = scanned(tmp_path)
        assert "W-REF-MISSING" in [one.code for one in found.diagnostics]
        (tmp_path / "a" / "references" / "x.md").write_text("x")
        found.scan()
        assert "W-REF-MISSING" not in [one.code for one in found.diagnostics]
