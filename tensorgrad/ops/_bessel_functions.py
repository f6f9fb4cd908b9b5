"""Bessel functions of order 0 and 1 as formulas over whole arrays, written as those in `_special_functions.py`."""

from __future__ import annotations

import math

from ._special_functions import _SMALLEST, INF, NAN, PI, _double, _on_floats, _poly, _ratio

# ── modified Bessel functions ─────────────────────────────────────────────────────────────────

# I₀(x) in x², x <= 8: fitted to 9e-9, 6e-17; √x exp(-x) I₀(x) in 16/x - 1, x >= 8: fitted to 9e-9, 2e-16.
_I0_LOW = (
    (5.71611666e-17, 5.81554295e-15, 2.634196e-12, 4.62351639e-10, 6.80049793e-08, 6.77931361e-06, 0.000434043823,
     0.0156249493, 0.250000056, 0.999999991),
    (7.919913239342663e-31, 3.212678666622563e-28, 2.6723791816628086e-25, 1.4906475627203912e-22,
     7.24521768349182e-20, 2.896795522848953e-17, 9.385994754217998e-15, 2.4028070478977276e-12, 4.709502859498757e-10,
     6.781684022604071e-08, 6.781684028048123e-06, 0.0004340277777769614, 0.015625000000001228, 0.2499999999999993,
     1.0),
)
_I0_HIGH = (
    (3.70001355e-07, 1.638626e-06, 1.11028738e-05, 0.000136156531, 0.00336055807, 0.402176513),
    (-1.4003804903176042e-10, -9.515499313276941e-11, 9.342791798395808e-10, 7.012346755958847e-10,
     -2.854221974204657e-09, -2.643362026906411e-09, 5.103452515316267e-09, 6.970911442173885e-09,
     -4.246657898125164e-09, -1.3155550630863574e-08, -7.1252579424949965e-09, 7.48467492199817e-09,
     2.162614337077533e-08, 3.933754009709249e-08, 8.871277388690555e-08, 2.973587836059624e-07,
     1.4838481544966648e-06, 1.114303383613852e-05, 0.00013621607437755727, 0.0033605519836673054, 0.40217650944500816),
)
# I₁(x) / x in x², x <= 8: fitted to 2e-9, 1e-17; √x exp(-x) I₁(x) in 16/x - 1, x >= 8: fitted to 1e-8, 2e-16.
_I1_LOW = (
    (2.75065459e-18, 3.5040392e-16, 1.61787369e-13, 3.31825708e-11, 5.66211311e-09, 6.78021505e-07, 5.4254577e-05,
     0.00260416268, 0.0625000052, 0.499999999),
    (2.589279166154226e-32, 1.1685031316288527e-29, 1.0239322176621188e-26, 6.215259687995778e-24,
     3.292983438721148e-21, 1.4484120164760006e-18, 5.214436771024243e-16, 1.5017545159809959e-13,
     3.36393059600857e-11, 5.6514033541202395e-09, 6.78168402791106e-07, 5.4253472222178126e-05, 0.0026041666666667407,
     0.06249999999999995, 0.5),
)
_I1_HIGH = (
    (-4.31415248e-07, -2.00912034e-06, -1.49908873e-05, -0.000219168748, -0.00974958469, 0.389398455),
    (1.4665588361302378e-10, 9.225668894635822e-11, -9.816512980286173e-10, -6.875792678314438e-10,
     3.017144366258387e-09, 2.63628015567035e-09, -5.466025009944035e-09, -7.111066335623918e-09,
     4.768716111427481e-09, 1.3803567208894875e-08, 7.1276078130163976e-09, -8.364279869658098e-09,
     -2.34548897534319e-08, -4.3139731654091764e-08, -1.0000307424044652e-07, -3.4838461139867464e-07,
     -1.8349107451560636e-06, -1.5038547240857092e-05, -0.00021923576381894795, -0.009749577193235244,
     0.3893984590258723),
)


def _bessel_i(xp, x, low, high, odd, scaled):
    """I₀ or I₁, exp(-|x|) times that if scaled: a polynomial up to 8, beyond it exp(x) / √x times one in 16/x - 1."""
    double = _double(x)
    top = 713.98 if double else 91.9  # overflow
    a = xp.absolute(x)
    small, large = xp.minimum(a, 8.0), xp.maximum(a, 8.0)
    near = _poly(small * small, low[double])
    if odd:
        near = near * small
    inverse = 1.0 / large
    far = _poly(16.0 * inverse - 1.0, high[double]) * xp.sqrt(inverse)
    if scaled:
        y = xp.where(a < 8, near * xp.exp(-small), far)
    else:
        half = xp.exp(0.5 * xp.minimum(large, top))
        y = xp.where(a < 8, near, xp.where(a > top, INF, half * far * half))
    return xp.copysign(y, x) if odd else y


@_on_floats
def i0(xp, x):
    """The modified Bessel function I₀(x). Accuracy 5e-7, 6e-16."""
    return _bessel_i(xp, x, _I0_LOW, _I0_HIGH, odd=False, scaled=False)


@_on_floats
def i0e(xp, x):
    """exp(-|x|) I₀(x). Accuracy 5e-7, 6e-16."""
    return _bessel_i(xp, x, _I0_LOW, _I0_HIGH, odd=False, scaled=True)


@_on_floats
def i1(xp, x):
    """The modified Bessel function I₁(x), which is odd. Accuracy 5e-7, 6e-16."""
    return _bessel_i(xp, x, _I1_LOW, _I1_HIGH, odd=True, scaled=False)


@_on_floats
def i1e(xp, x):
    """exp(-|x|) I₁(x). Accuracy 5e-7, 5e-16."""
    return _bessel_i(xp, x, _I1_LOW, _I1_HIGH, odd=True, scaled=True)


# K₀(x) + log(x) I₀(x) in x², x <= 1: fitted to 3e-10 and 8e-19; √x exp(x) K₀(x) in 1/x, x >= 1: 2e-10, 2e-17.
_K0_LOW = (
    (1.53265936e-05, 0.000845673146, 0.0252490595, 0.278982863, 0.115931516),
    (6.615914251629488e-12, 1.2082514836518486e-09, 1.6271070905312724e-07, 1.4914719229825221e-05,
     0.0008460350907259078, 0.025248929932160484, 0.2789828789146032, 0.11593151565841245),
)
_K0_HIGH = (
    ((0.55729554, 14.0570471, 47.2241008, 41.6788546, 9.64831255),
     (14.5502578, 41.4152707, 34.2171941, 7.69823962)),
    ((0.41077123306519425, 29.439169285112147, 328.6879832769428, 1232.0969837847827, 1999.3297367155765,
      1564.101328989227, 606.4711962263505, 110.34599042879029, 7.398357488673035),
     (38.20070302752733, 339.3805342566029, 1135.1544983883973, 1729.2979434311992, 1303.9842973549596,
      494.5766020660402, 88.78124151157145, 5.903035215512475)),
)
# x (K₁(x) - log(x) I₁(x)) in x², x <= 1: fitted to 3e-9 and 1e-17; √x exp(x) K₁(x) in 1/x, x >= 1: 3e-10, 3e-17.
_K1_LOW = (
    (-0.000116493559, -0.00463870187, -0.0853719664, -0.307965602, 0.999999997),
    (-9.039825891990634e-11, -1.4027426805832683e-08, -1.5592910895336179e-06, -0.00011253606927809508,
     -0.004642182766748743, -0.08537071972861611, -0.3079657578292079, 1.0),
)
_K1_HIGH = (
    ((8.32550044, 84.6555311, 207.493669, 165.982325, 38.1085048),
     (32.2146894, 123.731912, 121.032417, 30.4061876)),
    ((13.667708309832548, 386.9519978268962, 2876.5872982771716, 8709.053838739945, 12665.918284077143,
      9430.28128278732, 3601.3684134616014, 657.6861772553738, 44.69839228934458),
     (89.48734389281499, 1114.1814214775209, 4541.915466011893, 7908.396668415963, 6573.33908348119, 2685.886802859168,
      511.38358777287897, 35.664157100377885)),
)


def _bessel_k(xp, x, order, scaled):
    """K₀ or K₁, exp(x) times that if scaled: infinite at 0, nan below (DLMF 10.31.1, 10.31.2, 10.40.2)."""
    double = _double(x)
    tiny = _SMALLEST[order][double]
    small = xp.clamp(x, tiny, 1.0)
    t, log = small * small, xp.log(small)
    if order:
        near = _poly(t, _K1_LOW[double]) / small + log * (small * _poly(t, _I1_LOW[double]))
    else:
        near = _poly(t, _K0_LOW[double]) - log * _poly(t, _I0_LOW[double])
    large = xp.maximum(x, 1.0)
    inverse = 1.0 / large
    far = _ratio(inverse, (_K1_HIGH if order else _K0_HIGH)[double]) * xp.sqrt(inverse)
    if scaled:
        near = near * xp.exp(small)
    else:
        far = far * xp.exp(-large)
    y = xp.where(x < 1, near, far)
    infinite = x < tiny  # among the floats that is 0 alone where log(x) is what counts
    return xp.where(x < 0, NAN, xp.where(infinite, INF, y))


@_on_floats
def modified_bessel_k0(xp, x):
    """The modified Bessel function K₀(x). Accuracy 5e-7, 7e-16."""
    return _bessel_k(xp, x, 0, scaled=False)


@_on_floats
def modified_bessel_k1(xp, x):
    """The modified Bessel function K₁(x). Accuracy 5e-7, 7e-16."""
    return _bessel_k(xp, x, 1, scaled=False)


@_on_floats
def scaled_modified_bessel_k0(xp, x):
    """exp(x) K₀(x). Accuracy 4e-7, 7e-16."""
    return _bessel_k(xp, x, 0, scaled=True)


@_on_floats
def scaled_modified_bessel_k1(xp, x):
    """exp(x) K₁(x). Accuracy 4e-7, 6e-16."""
    return _bessel_k(xp, x, 1, scaled=True)


# ── Bessel functions ──────────────────────────────────────────────────────────────────────────

# J₀(x) / ((x² - z₁²)(x² - z₂²)) over its first two zeros, in x², x <= 5: fitted to 5e-9 and 1e-16.
_J0_LOW = (
    (6.30781315e-15, -2.02073278e-12, 3.92306707e-10, -5.31670559e-08, 4.78430294e-06, -0.000251202262, 0.0056746933),
    (1.9954139725830446e-25, -1.378699008489278e-22, 6.718625733843309e-20, -2.6503019654680327e-17,
     8.413157480928508e-15, -2.093121162760591e-12, 3.935827365103856e-10, -5.317886334742023e-08,
     4.784356140896241e-06, -0.00025120235414942854, 0.005674693325155617),
)
_J0_ZEROS = (5.783185962946784, 30.471262343662087)
# J₁(x) / (x (x² - z₁²)(x² - z₂²)), likewise: 2e-9 and 3e-17.
_J1_LOW = (
    (3.38682089e-16, -1.17785067e-13, 2.55163998e-11, -3.92892326e-09, 4.08589024e-07, -2.53047699e-05, 0.000691922835),
    (7.539175471766362e-27, -5.543990215180116e-24, 2.9216825483667747e-21, -1.2574031711991965e-18,
     4.3897503529122333e-16, -1.2121603128067098e-13, 2.557633440537301e-11, -3.929471053588887e-09,
     4.085914533649835e-07, -2.5304774079730348e-05, 0.0006919228366408253),
)
_J1_ZEROS = (14.681970642123893, 49.2184563216946)
# Y₀(x) - 2/π log(x) J₀(x) in x²/12.5 - 1, x <= 5: fitted to 1e-9 and 3e-17, absolutely.
_Y0_LOW = (
    (-7.01226649e-06, 0.00013060292, -0.0018027835, 0.0176348527, -0.111516832, 0.388516536, -0.470576364,
     -0.432655833, 0.483724858),
    (-6.0504253150253976e-12, 2.657789020193505e-10, -9.720953740548308e-09, 2.914215949545538e-07,
     -6.985504375731819e-06, 0.00012994629120519037, -0.001802809666549524, 0.01763534538925582, -0.11151682184328675,
     0.38851639956571976, -0.47057636552972876, -0.4326558222855129, 0.4837248578102995),
)
# (Y₁(x) - 2/π (log(x) J₁(x) - 1/x)) / x, likewise: 6e-11 and 1e-18.
_Y1_LOW = (
    (-4.12644335e-07, 8.76753843e-06, -0.00014141712, 0.00166877729, -0.0134334342, 0.0663469607, -0.163120204,
     0.0910865078, 0.13974939),
    (-2.3979489945380915e-13, 1.1462847148695585e-11, -4.6013005737718197e-10, 1.528888444643139e-08,
     -4.1137780800959213e-07, 8.73309831527648e-06, -0.00014141835794481274, 0.0016688031328605528,
     -0.013433433740818172, 0.06634695354779145, -0.16312020358118715, 0.09108650838448443, 0.13974939033568806),
)
# P and x Q in 1/x², x >= 5, of J = √(2/πx) (P cos χ - Q sin χ) and Y = √(2/πx) (P sin χ + Q cos χ), where
# χ = x - (order + 1/2) π/2: fitted to 1e-9 and 5e-18 (P), 2e-8 and 2e-16 (Q).
_P0 = (
    ((0.921881304, 1.33955778, 0.150366125),
     (1.35013019, 0.150366126)),
    ((0.861925536693273, 3.593243497006433, 2.157597665405376, 0.3806203225397311, 0.02454307612540065,
      0.000597702382959298, 4.528496986081371e-06),
     (3.7147341881180758, 2.182034686489593, 0.3822844516756578, 0.024584616581957614, 0.0005980207929036314,
      4.528496986081371e-06)),
)
_Q0 = (
    ((-0.0838573537, -0.0888522746, -0.00745532945),
     (0.745763033, 0.059642637)),
    ((-0.06019531268975052, -0.2257735933613478, -0.11127049770885147, -0.0164097413566245, -0.0009039462838490707,
      -1.9143326122198043e-05, -1.279019832389635e-07),
     (2.197429279669131, 0.9580687193664256, 0.1353016811760983, 0.00731979686120406, 0.0001537461495240126,
      1.0232158659117084e-06)),
)
_P1 = (
    ((1.17433967, 1.77214445, 0.211626091),
     (1.74734488, 0.211626091)),
    ((1.334481332039507, 5.1347501103368325, 3.1750797152119574, 0.5780083006792256, 0.03824662772630517,
      0.0009509570838343603, 7.3274178616793e-06),
     (4.832541383424637, 3.112759319127775, 0.5736712400834675, 0.03813634465090997, 0.0009500984020536957,
      7.3274178616793e-06)),
)
_Q1 = (
    ((0.307368248, 0.313215874, 0.0272139966),
     (0.855084889, 0.0725706583)),
    ((0.2624134595522023, 0.8625960373427093, 0.4265970784771362, 0.06400985969795137, 0.0035894219924175767,
      7.723379936758306e-05, 5.2315944584973e-07),
     (2.532831103121768, 1.1788156023639644, 0.17318007525055223, 0.009627179947771625, 0.00020633826874281796,
      1.3950918555992802e-06)),
)


def _bessel_j_low(xp, x, order):
    """J of order 0 or 1 for 0 <= x <= 5."""
    t = x * x
    z1, z2 = _J1_ZEROS if order else _J0_ZEROS
    y = (t - z1) * (t - z2) * _poly(t, (_J1_LOW if order else _J0_LOW)[_double(x)])
    return x * y if order else y


def _bessel_high(xp, x, order, second):
    """J, or Y if second, for x >= 5 (DLMF 10.17.3, 10.17.4); cos(x - π/4) is taken as (cos x + sin x) / √2."""
    double = _double(x)
    inverse = 1.0 / x
    z = inverse * inverse
    p = _ratio(z, (_P1 if order else _P0)[double])
    q = _ratio(z, (_Q1 if order else _Q0)[double]) * inverse
    angle = xp.minimum(x, 1e300 if double else 1e38)
    c, s = xp.cos(angle), xp.sin(angle)
    cos, sin = (s - c, -s - c) if order else (c + s, s - c)
    return math.sqrt(1 / PI) * xp.sqrt(inverse) * (p * sin + q * cos if second else p * cos - q * sin)


def _bessel_j(xp, x, order):
    a = xp.absolute(x)
    far = _bessel_high(xp, xp.maximum(a, 5.0), order, second=False)
    y = xp.where(a < 5, _bessel_j_low(xp, xp.minimum(a, 5.0), order), far)
    return xp.copysign(1.0, x) * y if order else y


@_on_floats
def bessel_j0(xp, x):
    """The Bessel function J₀(x). Accuracy 4e-7, 8e-16, of the envelope √(2/πx) for x > 1."""
    return _bessel_j(xp, x, 0)


@_on_floats
def bessel_j1(xp, x):
    """The Bessel function J₁(x), which is odd. Accuracy 4e-7, 6e-16, of the envelope √(2/πx) for x > 1."""
    return _bessel_j(xp, x, 1)


def _bessel_y(xp, x, order):
    double = _double(x)
    tiny = _SMALLEST[order][double]
    small = xp.clamp(x, tiny, 5.0)
    t = 0.08 * (small * small) - 1.0
    log = xp.log(small) * _bessel_j_low(xp, small, order)
    if order:
        near = (2 / PI) * (log - 1.0 / small) + small * _poly(t, _Y1_LOW[double])
    else:
        near = (2 / PI) * log + _poly(t, _Y0_LOW[double])
    y = xp.where(x < 5, near, _bessel_high(xp, xp.maximum(x, 5.0), order, second=True))
    infinite = x < tiny  # among the floats that is 0 alone where log(x) is what counts
    return xp.where(x < 0, NAN, xp.where(infinite, -INF, y))


@_on_floats
def bessel_y0(xp, x):
    """The Bessel function Y₀(x): -∞ at 0, nan below. Accuracy 6e-7, 1e-15, of the envelope √(2/πx) for x > 1."""
    return _bessel_y(xp, x, 0)


@_on_floats
def bessel_y1(xp, x):
    """The Bessel function Y₁(x): -∞ at 0, nan below. Accuracy 5e-7, 8e-16, of the envelope √(2/πx) for x > 1."""
    return _bessel_y(xp, x, 1)
