# SPDX-License-Identifier: Apache-2.0
"""The package finds its own data wherever it is installed."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from makers import REPOSITORY

from sim2real_ros import paths
from sim2real_ros.errors import NotFoundError, OutputError
from sim2real_ros.paths import writable_file, writable_folder, write_text


def install(prefix, site='lib/python3.12/site-packages'):
    """Copy paths.py into an installation under `prefix` and load it from there."""
    package = prefix / site / 'sim2real_ros'
    package.mkdir(parents=True)
    target = shutil.copy(paths.__file__, package / 'paths.py')
    spec = importlib.util.spec_from_file_location('installed_paths', target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put_data(share):
    (share / 'config' / 'robots').mkdir(parents=True)
    (share / 'urdf').mkdir()
    return share


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An environment in which nothing but what a test installs can be found."""
    monkeypatch.setattr(sys, 'prefix', str(tmp_path / 'interpreter'))
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    return tmp_path


def test_source_checkout_is_its_own_share_directory():
    share = paths.share_directory()
    assert share == REPOSITORY
    assert (share / 'config' / 'robots' / 'go2.yaml').is_file()
    assert (share / 'urdf' / 'go2.urdf').is_file()


@pytest.mark.parametrize('site', ['lib/python3.12/site-packages', 'local/lib/python3.12/dist-packages'])
def test_installed_package_finds_share_under_its_prefix(elsewhere, site):
    share = put_data(elsewhere / 'prefix' / 'share' / 'sim2real_ros')
    assert install(elsewhere / 'prefix', site).share_directory() == share


def test_package_installed_elsewhere_finds_share_of_the_environment(elsewhere):
    share = put_data(elsewhere / 'interpreter' / 'share' / 'sim2real_ros')
    assert install(elsewhere / 'prefix').share_directory() == share


def test_ament_prefix_path_is_asked_last_and_its_empty_parts_are_ignored(elsewhere, monkeypatch):
    share = put_data(elsewhere / 'ament' / 'share' / 'sim2real_ros')
    module = install(elsewhere / 'prefix')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f':{elsewhere / "nowhere"}:{elsewhere / "ament"}')
    assert module.share_directory() == share


def test_installation_without_data_says_where_it_looked(elsewhere):
    module = install(elsewhere / 'prefix')
    with pytest.raises(NotFoundError, match='data files of sim2real_ros .*looked in .*prefix') as caught:
        module.share_directory()
    assert str(elsewhere / 'interpreter') in str(caught.value)


def test_shipped_robot_is_found_by_name():
    assert paths.find_robot('go2') == REPOSITORY / 'config' / 'robots' / 'go2.yaml'


def test_robot_is_found_by_path(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.touch()
    assert paths.find_robot(str(path)) == path


def test_unknown_robot_lists_the_shipped_ones():
    with pytest.raises(NotFoundError, match='robot "go9" is neither a path nor one of the shipped ones: .*go2'):
        paths.find_robot('go9')


def test_no_robot_at_all_is_refused():
    with pytest.raises(NotFoundError, match='no robot given; shipped: .*go2'):
        paths.find_robot('')


def test_policy_folder_gives_its_yaml_before_its_onnx(tmp_path):
    (tmp_path / 'policy.onnx').touch()
    assert paths.find_policy(str(tmp_path)) == tmp_path / 'policy.onnx'
    (tmp_path / 'policy.yaml').touch()
    assert paths.find_policy(str(tmp_path)) == tmp_path / 'policy.yaml'


def test_policy_folder_without_policy_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match='holds neither policy.yaml nor policy.onnx'):
        paths.find_policy(str(tmp_path))


def test_unknown_policy_is_refused_by_name():
    with pytest.raises(NotFoundError, match='policy "nothing" is neither a path nor one of the shipped ones'):
        paths.find_policy('nothing')


def test_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'mine.yaml').touch()
    assert paths.find_robot('~/mine.yaml') == tmp_path / 'mine.yaml'


def test_a_writable_file_gets_its_folder_and_is_not_made_itself(tmp_path):
    assert writable_file(tmp_path / 'a' / 'b' / 'x.npz', '--trace') == tmp_path / 'a' / 'b' / 'x.npz'
    assert list((tmp_path / 'a' / 'b').iterdir()) == []


def test_a_writable_file_that_is_there_keeps_its_content(tmp_path):
    (tmp_path / 'x').write_text('kept')
    writable_file(tmp_path / 'x', '--trace')
    assert (tmp_path / 'x').read_text() == 'kept'


def test_what_cannot_be_written_is_refused_with_the_option_that_gave_it(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(OutputError, match=r'^--json: cannot write the file .*file/x: Not a directory|File exists$'):
        writable_file(tmp_path / 'file' / 'x', '--json')
    with pytest.raises(OutputError, match=r'^--run: cannot write into the folder .*file: a file of this name is there$'):
        writable_folder(tmp_path / 'file', '--run')


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='there is no device that is always full')
def test_a_disk_that_has_filled_meanwhile_is_told_with_the_option():
    with pytest.raises(OutputError, match=r'^--json: cannot write the file /dev/full: No space left on device$'):
        write_text(Path('/dev/full'), 'figures', '--json')


def test_a_result_is_written_into_a_folder_that_was_removed_meanwhile(tmp_path):
    path = writable_file(tmp_path / 'a' / 'figures.json', '--json')
    path.parent.rmdir()
    write_text(path, 'figures', '--json')
    assert path.read_text() == 'figures'


def test_a_writable_folder_is_made_and_left_empty(tmp_path):
    assert list(writable_folder(tmp_path / 'a' / 'b', '--run').iterdir()) == []
