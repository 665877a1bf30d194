"""The options of a fit, as users import them; :mod:`cstonet.settings.options` defines them."""

from cstonet.settings.options import *  # noqa: F403
from cstonet.settings.options import __all__ as __all__
