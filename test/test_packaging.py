# SPDX-License-Identifier: Apache-2.0
"""Promises of the package files: colcon, ROS and pip see the same package, complete and without paths of our machines."""

from __future__ import annotations

import configparser
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import setuptools
from makers import REPOSITORY

import sim2real_ros

# of catkin_pkg, which colcon uses: an address that fails makes colcon take the package for plain Python, silently
ADDRESS = re.compile(r'^[-a-zA-Z0-9_%+]+(\.[-a-zA-Z0-9_%+]+)*@[-a-zA-Z0-9%]+(\.[-a-zA-Z0-9%]+)*\.[a-zA-Z]{2,}$')
OURS = re.compile(rb'(?<![\w.*}])/(?:root|home|work|tmp)/')
DATA_FOLDERS = ('launch', 'config', 'policies', 'urdf')


@pytest.fixture(scope='module')
def package() -> ElementTree.Element:
    """The root of package.xml."""
    return ElementTree.parse(REPOSITORY / 'package.xml').getroot()


@pytest.fixture
def setup(monkeypatch) -> dict[str, Any]:
    """What setup.py hands to setuptools."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, 'setup', lambda **given: seen.update(given))
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path('setup.py')
    return seen


def files() -> list[Path]:
    """Return the files of the repository that git does not ignore, or all outside hidden and build folders without git."""
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=REPOSITORY, capture_output=True
    )
    if listed.returncode == 0:
        return [path for name in listed.stdout.decode().split('\0') if name and (path := REPOSITORY / name).is_file()]
    skip = {'.git', '.venv', 'build', 'install', 'log', 'runs', '__pycache__'}
    return [path for path in REPOSITORY.rglob('*') if path.is_file() and not skip & set(path.relative_to(REPOSITORY).parts)]


def test_package_xml_is_format_three_of_build_type_ament_python(package):
    assert package.tag == 'package'
    assert package.get('format') == '3'
    assert package.findtext('export/build_type') == 'ament_python'


def test_package_xml_has_what_its_schema_requires(package):
    for tag in ('name', 'version', 'description', 'maintainer', 'license'):
        assert package.findtext(tag), tag


def test_name_version_licence_and_description_agree_everywhere(package, setup):
    assert package.findtext('name') == setup['name'] == 'sim2real_ros'
    assert package.findtext('version') == setup['version'] == sim2real_ros.__version__
    assert re.fullmatch(r'\d+\.\d+\.\d+', setup['version'])
    assert package.findtext('license') == setup['license']
    assert package.findtext('description') == setup['description']


def test_every_maintainer_address_passes_the_pattern_of_colcon(package, setup):
    addresses = [maintainer.get('email') for maintainer in package.findall('maintainer')]
    assert addresses
    for address in addresses:
        assert ADDRESS.match(address), address
    assert setup['maintainer_email'] in addresses


def test_every_message_package_of_the_ros_extra_is_a_dependency_in_package_xml(package, setup):
    depends = {tag.text for kind in ('depend', 'exec_depend') for tag in package.findall(kind)}
    for requirement in setup['extras_require']['ros']:
        name = re.match(r'ros-jazzy-([a-z-]+)', requirement).group(1).replace('-', '_')
        assert name in depends


def test_setup_cfg_puts_executables_where_ros2_run_looks():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / 'setup.cfg')
    assert config['develop']['script_dir'] == '$base/lib/sim2real_ros'
    assert config['install']['install_scripts'] == '$base/lib/sim2real_ros'


def test_the_resource_marker_exists_and_is_installed(setup):
    assert (REPOSITORY / 'resource' / 'sim2real_ros').is_file()
    assert ('share/ament_index/resource_index/packages', ['resource/sim2real_ros']) in setup['data_files']
    assert ('share/sim2real_ros', ['package.xml']) in setup['data_files']


@pytest.mark.parametrize('folder', DATA_FOLDERS)
def test_every_data_file_is_installed_under_share_at_its_own_place(setup, folder):
    installed = {(place, name) for place, names in setup['data_files'] for name in names}
    there = [path.relative_to(REPOSITORY) for path in files() if path.is_relative_to(REPOSITORY / folder)]
    assert there
    for path in there:
        assert (f'share/sim2real_ros/{path.parent.as_posix()}', path.as_posix()) in installed


def test_every_python_package_is_installed(setup):
    folders = {path.parent for path in (REPOSITORY / 'sim2real_ros').rglob('*.py')}
    names = {'.'.join(folder.relative_to(REPOSITORY).parts) for folder in folders}
    assert set(setup['packages']) == names


def test_every_console_script_leads_to_a_function(setup):
    for script in setup['entry_points']['console_scripts']:
        name, target = script.split(' = ')
        module, function = target.split(':')
        path = REPOSITORY / Path(*module.split('.')).with_suffix('.py')
        assert re.search(rf'^def {function}\(', path.read_text(encoding='utf-8'), re.MULTILINE), name


def test_no_file_outside_test_names_a_path_of_a_developers_machine():
    found = [
        f'{path.relative_to(REPOSITORY)}: {match.group().decode()}'
        for path in files()
        if path.relative_to(REPOSITORY).parts[0] != 'test'
        for match in [OURS.search(path.read_bytes())]
        if match
    ]
    assert not found


@pytest.mark.parametrize('text', [b'open("/tmp/x")', b'see /home/me/y', b'file:///root/z', b'=/work/main'])
def test_such_a_path_would_be_found(text):
    assert OURS.search(text)


def test_every_source_file_states_its_licence():
    for path in files():
        if path.suffix == '.py' and path.stat().st_size:
            assert path.read_text(encoding='utf-8').startswith('# SPDX-License-Identifier: Apache-2.0\n'), path
