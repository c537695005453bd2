"""The key file: made once, kept to its owner, and missed loudly."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.store.secrets import Cipher


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "key"


def test_what_was_encrypted_is_decrypted_by_another_start_with_the_same_file(file: Path) -> None:
    sealed = Cipher(file).encrypt("秘密", bound_to="ak")
    assert "秘密" not in sealed
    assert Cipher(file).decrypt(sealed, bound_to="ak") == "秘密"


def test_the_same_text_is_never_encrypted_alike(file: Path) -> None:
    cipher = Cipher(file)
    assert cipher.encrypt("secret", bound_to="ak") != cipher.encrypt("secret", bound_to="ak")


def test_the_key_file_is_made_at_first_use_for_its_owner_alone(file: Path) -> None:
    umask = os.umask(0)
    try:
        cipher = Cipher(file)
        assert not file.exists()
        cipher.encrypt("secret", bound_to="ak")
    finally:
        os.umask(umask)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in file.parent.iterdir()] == ["key"]


def test_two_that_make_the_key_file_at_once_make_one_key(file: Path) -> None:
    ciphers = [Cipher(file) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda cipher: cipher.encrypt("secret", bound_to="ak"), ciphers))
    assert [Cipher(file).decrypt(text, bound_to="ak") for text in sealed] == ["secret"] * 8


def test_a_lost_key_file_is_missed_and_not_made_anew(file: Path) -> None:
    sealed = Cipher(file).encrypt("secret", bound_to="ak")
    file.unlink()
    with pytest.raises(ConfigError, match="is missing.*restore it from a backup"):
        Cipher(file).decrypt(sealed, bound_to="ak")
    assert not file.exists()


def test_a_key_of_another_server_is_noticed(file: Path, tmp_path: Path) -> None:
    sealed = Cipher(file).encrypt("secret", bound_to="ak")
    Cipher(tmp_path / "other").encrypt("secret", bound_to="ak")
    with pytest.raises(ConfigError, match="does not match"):
        Cipher(tmp_path / "other").decrypt(sealed, bound_to="ak")


def test_a_text_of_one_purpose_is_not_taken_for_one_of_another(file: Path) -> None:
    cipher = Cipher(file)
    sealed = cipher.encrypt("secret", bound_to="ann/lab", purpose="registry secrets")
    assert cipher.decrypt(sealed, bound_to="ann/lab", purpose="registry secrets") == "secret"
    with pytest.raises(ConfigError, match="does not match this database's access keys"):
        cipher.decrypt(sealed, bound_to="ann/lab")


def test_a_text_that_was_moved_to_another_record_is_noticed(file: Path) -> None:
    cipher = Cipher(file)
    with pytest.raises(ConfigError, match="does not match"):
        cipher.decrypt(cipher.encrypt("secret", bound_to="ak"), bound_to="other")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o610])
def test_a_key_file_open_to_others_is_refused(file: Path, mode: int) -> None:
    Cipher(file).encrypt("secret", bound_to="ak")
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"{mode:04o}.*chmod 600"):
        Cipher(file).encrypt("secret", bound_to="ak")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_file_of_another_user_is_refused(file: Path) -> None:
    Cipher(file).encrypt("secret", bound_to="ak")
    os.chown(file, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        Cipher(file).encrypt("secret", bound_to="ak")


@pytest.mark.parametrize("content", [b"", b"abc", b"0" * 63, b"0" * 66, b"z" * 64, b"\xff" * 32])
def test_a_damaged_key_file_is_refused_and_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="is damaged"):
        Cipher(file).encrypt("secret", bound_to="ak")
    assert file.read_bytes() == content


def test_a_link_a_folder_and_a_pipe_are_no_key_files(file: Path, tmp_path: Path) -> None:
    Cipher(tmp_path / "real").encrypt("secret", bound_to="ak")
    file.symlink_to("real")
    with pytest.raises(ConfigError, match="cannot be read"):
        Cipher(file).encrypt("secret", bound_to="ak")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        Cipher(tmp_path / "folder").encrypt("secret", bound_to="ak")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        Cipher(tmp_path / "pipe").encrypt("secret", bound_to="ak")


def test_a_key_file_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be created: No such file"):
        Cipher(tmp_path / "missing" / "key").encrypt("secret", bound_to="ak")
