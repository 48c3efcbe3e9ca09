"""Settings: defaults, environment variables, checks, overriding, the generated table."""

import os
import threading
from pathlib import Path

import pytest

from monograph.config import Config, SettingError, config, unknown_variables


def test_defaults_without_environment():
    settings = Config({})
    assert settings.backend == "cpu"
    assert settings.threads >= 1
    assert settings.cache_dir.name == "monograph"
    assert settings.deterministic is False


def test_environment_variables_set_typed_values():
    settings = Config(
        {
            "MONOGRAPH_BACKEND": "reference",
            "MONOGRAPH_THREADS": "3",
            "MONOGRAPH_DETERMINISTIC": "yes",
            "MONOGRAPH_ONEDNN": "0",
            "MONOGRAPH_CACHE_DIR": "~/programs",
        }
    )
    assert settings.backend == "reference"
    assert settings.threads == 3
    assert settings.deterministic is True
    assert settings.onednn is False
    assert settings.cache_dir == Path.home() / "programs"


def test_wrong_environment_variable_is_named():
    with pytest.raises(SettingError, match="MONOGRAPH_THREADS accepts a whole number.*'many'"):
        Config({"MONOGRAPH_THREADS": "many"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend", "gpu"),
        ("threads", 0),
        ("threads", 2.0),
        ("threads", True),
        ("verbosity", 4),
        ("deterministic", "perhaps"),
        ("cache_dir", 3),
        ("dump", None),
    ],
)
def test_wrong_values_are_refused_and_change_nothing(name, value):
    settings = Config({})
    before = getattr(settings, name)
    with pytest.raises(SettingError, match=f"config.{name} accepts"):
        setattr(settings, name, value)
    assert getattr(settings, name) == before


def test_unknown_setting_suggests_the_nearest():
    with pytest.raises(SettingError, match="did you mean 'backend'"):
        Config({}).bakend = "cpu"


def test_override_restores_also_after_an_error():
    settings = Config({})
    with pytest.raises(KeyError), settings.override(verbosity=2, backend="null"):
        assert (settings.verbosity, settings.backend) == (2, "null")
        raise KeyError
    assert (settings.verbosity, settings.backend) == (0, "cpu")


def test_override_with_a_wrong_value_changes_nothing():
    settings = Config({})
    with pytest.raises(SettingError), settings.override(verbosity=2, backend="gpu"):
        pass
    assert settings.verbosity == 0


@pytest.mark.parametrize(("given", "threads"), [("3", 3), ("4,2", 4), ("", None), ("many", None)])
def test_openmp_says_how_many_threads(monkeypatch, given, threads):
    monkeypatch.delenv("MONOGRAPH_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert Config({}).threads == (threads or len(os.sched_getaffinity(0)))


def test_override_is_seen_by_other_threads():
    settings, seen = Config({}), []
    with settings.override(verbosity=3):
        thread = threading.Thread(target=lambda: seen.append(settings.verbosity))
        thread.start()
        thread.join()
    assert seen == [3]


def test_reading_is_plain_attribute_access():
    assert "__getattr__" not in dir(Config)
    assert Config.__getattribute__ is object.__getattribute__
    assert "threads" in vars(config)


def test_misspelt_variables_are_found():
    environment = {"MONOGRAPH_THREADS": "1", "MONOGRAPH_TREADS": "1", "HOME": ""}
    assert unknown_variables(environment) == ["MONOGRAPH_TREADS"]


def test_documentation_table_is_current():
    document = Path(__file__).parents[1] / "docs" / "settings.md"
    assert Config({}).table() in document.read_text(encoding="utf-8"), "run `make docs`"
