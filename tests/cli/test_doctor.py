"""`monograph doctor`."""

import sys

import pytest

from monograph.cli import doctor
from monograph.cli.main import main
from monograph.config import config


def test_report_names_what_matters(capsys):
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    for name in ("Python", "numpy", "llvmlite", "oneDNN", "libgomp", "cache", "MONOGRAPH_THREADS"):
        assert name in report


def test_missing_essential_fails(capsys, monkeypatch):
    finding = doctor.package("no-such-package", needed=True, remedy="pip install it")
    monkeypatch.setattr(doctor, "CHECKS", [lambda: [finding]])
    assert main(["doctor"]) == 1
    report = capsys.readouterr().out
    assert "→ pip install it" in report
    assert "cannot run: no-such-package missing" in report


def test_broken_onednn_part_does_not_stop_the_report(monkeypatch):
    monkeypatch.setitem(sys.modules, "monograph.backends.cpu.onednn", None)
    (finding, *_) = doctor.check_onednn()
    assert finding.state == "absent"


def test_cpuinfo(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: Some CPU\nflags\t\t: sse avx2 avx512f\n\nmodel name\t: Other\n")
    assert doctor.read_cpuinfo(path) == ("Some CPU", ["AVX2", "AVX-512"])
    assert doctor.read_cpuinfo(tmp_path / "none")[1] == []


def test_cache_is_measured_and_need_not_exist(tmp_path):
    (tmp_path / "program").write_bytes(b"12345")
    assert doctor.folder_size(tmp_path) == (5, 1)
    assert doctor.folder_size(tmp_path / "none") == (0, 0)
    assert doctor.existing_parent(tmp_path / "a" / "b") == tmp_path


@pytest.mark.parametrize("place", ["/proc/nothing", "a file"])
def test_a_cache_folder_that_cannot_be_written_is_told(tmp_path, place):
    folder = tmp_path / place
    if place == "a file":
        folder.write_text("")
    with config.override(cache_dir=folder, disk_cache=True):
        (finding,) = doctor.check_cache()
    assert finding.state == "absent"
    assert "cannot be written" in finding.detail and "MONOGRAPH_CACHE_DIR" in finding.remedy


def test_onednn_turned_off_is_told_once():
    with config.override(onednn=False):
        (finding,) = doctor.check_onednn()
    assert finding.state == "absent"
    assert finding.detail.startswith("turned off by the setting onednn; ")
