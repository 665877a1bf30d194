"""``python -m cstonet``."""

import sys

from cstonet.cli import main

sys.exit(main())
