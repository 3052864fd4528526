"""The lock, pyproject.toml, environment.yml and what is installed name the same things."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]


def locked() -> dict[str, Version]:
    lines = (ROOT / "requirements.lock").read_text().split()
    pairs = [line.split("==") for line in lines]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(r) for group in (project["dependencies"], *extras) for r in group]


def test_everything_named_in_pyproject_is_locked_within_its_range():
    versions = locked()
    for requirement in wanted():
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is in pyproject.toml but not in requirements.lock"
        assert requirement.specifier.contains(versions[name]), f"{requirement} / {versions[name]}"


def test_environment_yml_installs_the_lock_and_nothing_else():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["dependencies"][-1] == {"pip": ["-r requirements.lock"]}
    assert "python=3.11" in environment["dependencies"]
    assert (
        environment["name"]
        == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    )


def test_installed_versions_are_the_locked_ones():
    for name, version in locked().items():
        installed = Version(importlib.metadata.version(name))
        assert Version(installed.public) == version, f"{name}: {installed}, locked {version}"


def test_lock_pins_every_line_exactly_and_has_no_local_version():
    for line in (ROOT / "requirements.lock").read_text().split():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9A-Za-z.]+", line), line


def test_gitignore_does_not_swallow_lib():
    ignored = subprocess.run(["git", "check-ignore", "lib/text.py"], cwd=ROOT, capture_output=True)
    assert ignored.returncode == 1
