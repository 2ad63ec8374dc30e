"""L1: what can be said of a package without running any of it. YAML and `ast`; no import.

Proves: the manifest is of the strict subset; each declared class is in a module of the package;
no side file is there that another loader would act on; each skill has a sound SKILL.md.
Does not prove: that anything loads or works.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from reread.extensions import package
from reread.extensions.api import HOOKS
from reread.extensions.manifest import Entry, Manifest
from reread.skills.skill import FILE_NAME, parse
from reread.values import Code, Problem

_LIKE_A_HOOK = ("before_", "after_", "on_")
_NEAR = 0.8
_HOOKLESS = frozenset({"init", "uninit"})


def problems(held: Mapping[str, bytes], found: Manifest) -> Iterator[Problem]:
    """Yield everything that is wrong with the files of a package."""
    yield from package.undeclared(list(held), found.skill_dirs)
    trees: dict[str, ast.Module] = {}
    for path in sorted(held):
        if not path.endswith(".py") or _beside(path, found):
            continue
        tree = _parsed(path, held[path])
        if isinstance(tree, Problem):
            yield tree
        else:
            trees[path] = tree
            if PurePosixPath(path).name == "__init__.py":
                yield from _init(path, tree)
    for kind, entries in (("tool", found.tools), ("rail", found.rails)):
        for entry in entries:
            yield from _entry(kind, entry, found, held, trees)
    for folder in found.skill_dirs:
        yield from skills(held, folder)


def _beside(path: str, found: Manifest) -> bool:
    """Say whether a file is no code of the package: a skill's own script, or a test."""
    return path.startswith(("tests/", "assets/", *(f"{d}/" for d in found.skill_dirs)))


def _parsed(path: str, data: bytes) -> ast.Module | Problem:
    try:
        return ast.parse(data, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 1
        return Problem(
            Code.module_import_failed,
            f"{path}, line {line}",
            f"It is no Python: {getattr(error, 'msg', error)}.",
            "Mend that line.",
            "syntax",
        )


def _init(path: str, tree: ast.Module) -> Iterator[Problem]:
    """An `__init__.py` runs whenever anything of the package is imported; it must do nothing."""
    for node in tree.body:
        constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        plain = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if not (constant or future or plain or isinstance(node, ast.Pass)):
            yield Problem(
                Code.module_import_failed,
                f"{path}, line {node.lineno}",
                f"'{ast.unparse(node)[:80]}' stands in an __init__.py, which must do nothing.",
                "Leave it empty and name the module itself where it is needed.",
                "init_not_empty",
            )


def _entry(
    kind: str,
    entry: Entry,
    found: Manifest,
    held: Mapping[str, bytes],
    trees: Mapping[str, ast.Module],
) -> Iterator[Problem]:
    path = entry.file(found.prefix, found.name)
    if path not in held:
        yield Problem(
            Code.module_import_failed,
            path,
            f"The module '{entry.module}' has no file '{path}' in the package.",
            "Add the file, or name the one that is there.",
            "no_file",
        )
        return
    tree = trees.get(path)
    if tree is None:
        return
    if not _bound(tree, entry.name):
        yield Problem(
            Code.module_import_failed,
            path,
            f"There is no class '{entry.name}' in it.",
            "Name a class that the module has.",
            "no_class",
        )
    node = next(
        (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == entry.name), None
    )
    if node is not None:
        yield from _constructor(path, node)
        if kind == "rail":
            yield from _hooks(path, node, tree)


def _bound(tree: ast.Module, name: str) -> bool:
    """Say whether a module binds a name at its top level, in whatever way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and name in (node.asname or node.name, "*"):
            return True
    return any(isinstance(n, ast.alias) and n.name == "*" for n in ast.walk(tree))


def _constructor(path: str, node: ast.ClassDef) -> Iterator[Problem]:
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "__init__":
            continue
        needed = len(method.args.posonlyargs + method.args.args) - len(method.args.defaults) - 1
        keywords = [d for d in method.args.kw_defaults if d is None]
        if needed > 0 or keywords:
            yield Problem(
                Code.class_init_failed,
                f"{path}, line {method.lineno}",
                f"The constructor of '{node.name}' asks for an argument, and nobody gives it one.",
                "Let it take none and make its own card.",
                "constructor_argument",
            )


def _hooks(path: str, node: ast.ClassDef, tree: ast.Module) -> Iterator[Problem]:
    """Yield the hooks that would never be called: misspelt ones, ones that are not async, none."""
    methods = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for method in methods:
        place = f"{path}, line {method.lineno}"
        if method.name in HOOKS:
            if isinstance(method, ast.FunctionDef):
                cause = f"The hook '{method.name}' of '{node.name}' is no 'async def'."
                remedy = f"Write: async def {method.name}(self, ctx)"
                yield Problem(Code.rail_hook_not_observed, place, cause, remedy, "not_async")
        elif method.name not in used | _HOOKLESS and _is_like_a_hook(method.name):
            near = difflib.get_close_matches(method.name, HOOKS, n=1, cutoff=0.6)
            hint = f"Did you mean '{near[0]}'?" if near else f"Hooks are: {', '.join(HOOKS)}."
            cause = f"'{method.name}' of '{node.name}' is no hook, and nothing calls it."
            yield Problem(Code.rail_hook_not_observed, place, cause, hint, "unknown_hook")


def _is_like_a_hook(name: str) -> bool:
    return name.startswith(_LIKE_A_HOOK) or bool(difflib.get_close_matches(name, HOOKS, 1, _NEAR))


def skills(held: Mapping[str, bytes], folder: str) -> Iterator[Problem]:
    """Yield what is wrong with a folder of skills: each folder in it holds one, one level deep."""
    inside = [path.removeprefix(f"{folder}/") for path in held if path.startswith(f"{folder}/")]
    if not inside:
        yield _skill(
            folder, "There is no skill in it.", "Add a folder with a SKILL.md, or drop it."
        )
    if FILE_NAME in inside:
        yield _skill(
            folder,
            "It is a skill itself and no folder of skills.",
            f"Declare the folder above it: {PurePosixPath(folder).parent}",
        )
        return
    for name in sorted({path.split("/")[0] for path in inside if "/" in path}):
        path = f"{folder}/{name}/{FILE_NAME}"
        if path not in held:
            yield _skill(path, "It is not there.", f"Write {path}, directly in the skill's folder.")
            continue
        yield from _skill_file(path, name, held[path])


def _skill_file(path: str, name: str, data: bytes) -> Iterator[Problem]:
    parsed = parse(data, folder=name, path=path)
    wrong = [d for d in parsed.diagnostics if d.code.startswith("E")]
    for one in wrong:
        yield _skill(path, f"{one.code}: {one.message}.", "python app.py skills validate PATH")
    if parsed.front is not None and parsed.front.salvaged and not wrong:
        yield _skill(path, "Its front matter is no YAML.", "python app.py skills validate PATH")
        return
    if wrong:
        return
    values = parsed.front.values if parsed.front else {}
    written, said = values.get("name"), values.get("description")
    if written != name:
        yield _skill(
            path, f"Its name is '{written}' and its folder's '{name}'.", "Give both the same name."
        )
    if not isinstance(said, str) or not said.strip():
        yield _skill(path, "It has no description.", "Say when the skill is to be used.")


def _skill(where: str, cause: str, remedy: str) -> Problem:
    return Problem(Code.skill_manifest_invalid, where, cause, remedy)
