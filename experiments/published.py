"""Figures as the paper printed them. Data only: nothing here is ever changed to fit a result."""

from __future__ import annotations

__all__ = [
    "DEEP",
    "DELFT_AUC",
    "DELFT_SETS",
    "LITERATURE",
    "TIMES_BY_KERNELS",
    "TIMES_BY_SAMPLES",
    "TIMING_KERNELS",
    "TIMING_SAMPLES",
]

#: Columns of the Delft table.
DELFT_SETS = tuple("vehicle diabetes sonar breast imports glass wine liver survival".split())  # noqa: SIM905


def _table(text: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Lines ``method: mean std, mean std, ...`` by method and data set."""
    out = {}
    for line in text.strip().splitlines():
        method, _, entries = line.partition(":")
        pairs = (entry.split() for entry in entries.split(","))
        out[method.strip()] = {
            name: (float(mean), float(std))
            for name, (mean, std) in zip(DELFT_SETS, pairs, strict=True)
        }
    return out


#: Delft data, AUC in percent: method -> data set -> (mean, standard deviation over ten repeats).
DELFT_AUC = _table("""
FN-Average: 90.8 3.9,57.6 4.9,57.1 3.9,97.1 1.8,66.4 8.3,83.3 6.0,99.3 0.3,62.6 5.8,66.7 7.0
FN-Product: 90.8 2.1,57.7 6.5,60.5 4.6,92.5 4.0,73.8 9.2,82.8 6.3,99.2 1.0,61.3 5.9,62.6 7.5
GP-Average: 82.1 3.1,58.8 4.4,63.8 5.4,84.6 5.9,60.5 7.1,82.9 6.0,99.6 0.4,61.1 6.0,57.9 5.4
GP-Product: 39.8 8.0,44.7 5.7,47.0 8.6,30.8 11.4,55.4 12.0,49.8 10.9,65.0 12.7,56.5 6.7,47.2 9.1
KPCA-Average: 78.7 4.1,50.2 5.4,54.1 4.6,96.6 1.8,66.6 8.2,74.8 8.4,99.5 0.3,50.9 6.9,67.2 7.2
KPCA-Product: 82.2 3.6,49.4 6.4,57.4 4.8,86.7 4.9,75.1 9.2,74.7 8.2,99.1 0.9,50.9 6.9,64.9 7.1
MK-SVDD: 84.9 5.2,51.5 10.2,57.0 11.2,80.9 12.7,50.0 0.0,75.4 14.3,93.5 6.1,57.6 7.2,62.3 5.9
Slim-MK-SVDD: 89.8 4.3,58.1 5.6,63.0 7.2,96.5 1.6,72.4 8.1,82.3 7.0,99.2 0.9,58.4 7.3,65.7 6.3
MK-OCSVM: 84.9 5.1,51.9 9.8,56.6 11.1,84.7 8.7,53.2 10.3,77.2 13.5,93.5 5.8,57.4 7.3,62.8 5.6
Slim-MK-OCSVM: 90.6 4.0,58.0 4.6,62.6 7.5,96.8 1.3,72.4 8.2,81.8 7.0,99.1 0.9,58.4 7.3,65.3 6.5
lp MK-FN: 92.8 2.8,61.3 4.6,66.0 5.2,97.6 1.3,81.4 8.5,84.4 5.8,99.7 0.3,64.5 5.4,70.5 4.9
""")


def _times(text: str, sizes: tuple[int, ...]) -> dict[str, dict[int, float]]:
    """Lines ``method: ms, ms, ...`` by method and size."""
    out = {}
    for line in text.strip().splitlines():
        method, _, entries = line.partition(":")
        numbers = (float(entry) for entry in entries.split(","))
        out[method.strip()] = dict(zip(sizes, numbers, strict=True))
    return out


#: Numbers of kernels J at n = 100, and of samples n at J = 10; 100 features.
TIMING_KERNELS = (5, 15, 50, 100, 500)
TIMING_SAMPLES = (50, 100, 1000, 2000, 5000, 10000)
#: Training times in milliseconds on a 4 GHz Core i7 with unoptimised Matlab.
TIMES_BY_KERNELS = _times(
    """
lp MK-FN: 1.8, 4.2, 13.9, 4.2, 33.4
lp MK-FN-Grad: 35.4, 410.5, 420.5, 4893.2, 115881.3
lp MK-FN-CVX: 334.5, 321.4, 346.4, 516.0, 1177.9
Slim-MK-SVDD: 34.1, 65.3, 296.1, 589.1, 1696.0
MK-SVDD: 78.5, 173.7, 325.6, 1228.9, 4094.6
Slim-MK-OCSVM: 41.9, 93.7, 221.4, 982.1, 685.8
MK-OCSVM: 49.2, 85.4, 324.7, 1293.4, 2608.9
""",
    TIMING_KERNELS,
)
TIMES_BY_SAMPLES = _times(
    """
lp MK-FN: 0.8, 2.1, 719.0, 758.8, 6820.8, 21315.7
lp MK-FN-Grad: 18.0, 58.3, 20713.0, 46727.1, 135635.4, 323040.8
lp MK-FN-CVX: 330.0, 529.2, 1066.8, 1668.7, 10387.3, 37022.8
Slim-MK-SVDD: 453.9, 605.7, 30392.2, 107384.8, 85023.3, 497251.3
MK-SVDD: 32.9, 63.5, 2172.2, 4768.4, 26094.2, 108472.1
Slim-MK-OCSVM: 199.4, 404.0, 39973.4, 85429.2, 401301.7, 1753212.8
MK-OCSVM: 22.3, 46.7, 4254.1, 12757.6, 55474.9, 163852.4
""",
    TIMING_SAMPLES,
)


#: Images and faces: method -> (mean, standard deviation; None where none is printed). AUC in
#: percent for E5 to E8, ACER in percent for E9.
DEEP_COLUMNS = ("E5", "E6", "E7", "E8", "E9")


def _deep(text: str) -> dict[str, dict[str, tuple[float, float | None]]]:
    """Lines ``method: mean std, ...`` by experiment and method; a dash where nothing is printed."""
    out: dict[str, dict[str, tuple[float, float | None]]] = {name: {} for name in DEEP_COLUMNS}
    for line in text.strip().splitlines():
        method, _, entries = line.partition(":")
        for name, entry in zip(DEEP_COLUMNS, entries.split(","), strict=True):
            numbers = [float(part) for part in entry.split() if part != "-"]
            if numbers:
                spread = numbers[1] if len(numbers) > 1 else None
                out[name][method.strip()] = (numbers[0], spread)
    return out


DEEP = _deep("""
FN-Average: 94.7 0.2, 99.3 0.6, 99.6 0.4, 97.9, 5.0 3.9
FN-Product: 90.1 0.3, 99.3 0.6, 99.5 0.3, 93.2, 4.5 5.3
GP-Average: 93.5 0.2, 99.3 0.6, 99.7 0.3, 96.3, 6.2 4.4
GP-Product: 84.4 0.3, 99.3 0.6, 99.6 0.4, 87.7, 5.8 6.4
KPCA-Average: 91.6 0.2, 99.2 0.8, 99.4 0.7, 94.9, 5.4 3.6
KPCA-Product: 87.3 0.3, 99.3 0.8, 99.4 0.6, 90.2, 4.5 5.3
MK-SVDD: 92.3 0.2, 99.1 0.7, 99.4 0.6, 95.7, 7.1 6.2
Slim-MK-SVDD: 94.1 0.1, 99.2 0.6, 99.4 0.4, 97.4, 6.2 4.4
MK-OCSVM: 91.4 0.3, 99.1 0.8, 99.3 0.5, 94.6, 7.9 6.4
Slim-MK-OCSVM: 93.9 0.1, 99.1 0.8, 99.3 0.7, 97.1, 6.2 4.4
best end-to-end deep method: 95.6 3.1, 98.1 2.2, 92.3, 97.5, 3.7 2.1
lp MK-FN: 96.2 0.3, 99.5 0.5, 99.8 0.2, 98.7, 3.3 3.4
Joint lp MK-FN: -, -, -, -, 3.3 3.0
""")

#: Methods of others that the paper's tables quote: experiment -> method -> (mean, standard
#: deviation; None where none is printed). AUC in percent, ACER for E9. "[n]" stands for a work that
#: the paper cites without a name, by the key of its bibliography.
LITERATURE: dict[str, dict[str, tuple[float, float | None]]] = {
    "E5": {
        "Graphical Model": (87.0, None),
        "Adjusted Graphical Model": (91.1, None),
        "Autoencoder": (67.4, 1.2),
        "OCNN": (88.5, 1.4),
        "DOC": (95.6, 3.1),
        "OC-CNN": (84.3, None),
    },
    "E6": {
        "OCNN VGG16": (88.5, 14.4),
        "OCNN AlexNet": (82.6, 15.3),
        "OCSVM VGG16": (90.2, 5.0),
        "Autoencoder": (62.3, 7.2),
        "DOC AlexNet": (95.9, 2.1),
        "DOC VGG16": (98.1, 2.2),
    },
    "E7": {
        "DPCP": (67.7, None),
        "R-graph": (91.3, None),
        "[8578454]": (92.3, None),
    },
    "E8": {
        "[8953541]": (97.5, None),
        "OCGAN": (97.5, None),
        "[kliger2018novelty]": (97.1, None),
    },
    "E9": {
        "OCA-FAS": (4.1, 2.7),
        "[feng2020learning2]": (3.7, 2.1),
        "[8737949]": (9.8, 4.2),
        "SAPLC": (9.3, 4.4),
    },
}
