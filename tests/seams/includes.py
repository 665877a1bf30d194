"""Print, for the Makefile: where Eigen is, how extensions end, where pybind11 and Python are."""

import importlib.metadata
import sysconfig

import pybind11

eigen = importlib.metadata.distribution("cmeel-eigen").locate_file("cmeel.prefix/include/eigen3")
paths = sysconfig.get_paths()
python = dict.fromkeys((paths["include"], paths["platinclude"]))  # often the same folder
print(eigen, sysconfig.get_config_var("EXT_SUFFIX"), pybind11.get_include(), *python)
