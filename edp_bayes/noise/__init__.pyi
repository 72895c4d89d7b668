import edp_bayes.distributions.lattice as _lattice
import edp_bayes.distributions.noise as _noise

from .calibration import calibrate as calibrate
from .choosing import Tradeoff as Tradeoff
from .choosing import tradeoff as tradeoff
from .distribution import NoiseDistribution as NoiseDistribution
from .posterior import FixedBandwidth as FixedBandwidth
from .releasing import release as release
from .verification import Verification as Verification
from .verification import verify as verify

GaussianNoise = _noise.GaussianNoise
LaplaceNoise = _noise.LaplaceNoise
NoNoise = _noise.NoNoise
LatticeNoise = _lattice.LatticeNoise
