"""The folder that a backup is written into belongs to one backup at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.launch.backup import unfinished_folder
from console.launch.refusal import CannotStart


def test_two_backups_of_one_name_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path / "nightly") as folder:
        (folder / "surety.dump").write_bytes(b"half")
        with pytest.raises(CannotStart, match="Another backup is being written"), unfinished_folder(tmp_path / "nightly"):
            pass
        assert (folder / "surety.dump").read_bytes() == b"half"


def test_what_a_killed_backup_has_left_is_in_nobodys_way(tmp_path: Path) -> None:
    left = tmp_path / "nightly.unfinished"
    left.mkdir()
    (left / "surety.dump").write_bytes(b"half")
    with unfinished_folder(tmp_path / "nightly") as folder:
        assert folder == left and list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_its_name_stays(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path / "nightly") as folder:
        folder.rename(tmp_path / "nightly")
    assert [path.name for path in tmp_path.iterdir()] == ["nightly"]


def test_where_nothing_can_be_made_a_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotStart, match="cannot be made"), unfinished_folder(tmp_path / "file" / "nightly"):
        pass
