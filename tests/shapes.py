"""How lib's signatures are checked while the tests run: an int may stand for a float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
