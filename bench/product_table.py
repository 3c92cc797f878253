#!/usr/bin/env python3
"""Tables of a report of bench/product.py.

    product_table.py REPORT.json                      prints them
    product_table.py REPORT.json --update DOC.md      puts them between the markers "product: begin" and "product: end", those of the
                                                      networks of NEWER between "product, newer: begin" and "product, newer: end"
    product_table.py REPORT.json --check              fails when a ratio of bench/targets.json does not hold
"""
import argparse
import json
import pathlib
import statistics
import sys

FIRST = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "mobilenet_v2": "MobileNetV2", "efficientnet_b0": "EfficientNet-B0"}
NEWER = {"mobilenet_v3_large": "MobileNetV3 Large", "regnet_y_400mf": "RegNetY-400MF", "densenet121": "DenseNet-121",
         "shufflenet_v2_x1_0": "ShuffleNetV2", "vit_tiny": "ViT-Tiny", "swin_t": "Swin-T", "convnext_tiny": "ConvNeXt-T"}
TITLES = {**FIRST, **NEWER}
SETS = {"amx_int8": "AMX", "avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI", "avx2": "AVX2"}
TARGETS = json.loads((pathlib.Path(__file__).parent / "targets.json").read_text())["product"]


def ratio_text(value, required):
    """Two decimals, three where two would hide that the requirement is missed."""
    text = f"{value:.2f}"
    return f"{value:.3f}" if required and value < required <= float(text) else text


def rows_of(report):
    """(network, instruction set, Octet, rival, median ratio, required or None) of each pair."""
    for network, found in report["networks"].items():
        for isa, measurement in found["latency"].items():
            octet = measurement["contenders"][0]
            for rival in measurement["contenders"][1:]:
                kind = rival["name"].split()[0]
                required = TARGETS["required"].get(isa, {}).get(network) if kind == TARGETS["rival"] else None
                yield network, isa, octet, rival, statistics.median(rival["times_as_long"]), required


def missed(report):
    return [f"{network} {isa} {ratio_text(ratio, required)} < {required}"
            for network, isa, _, _, ratio, required in rows_of(report) if required and ratio < required]


def speed_table(report):
    lines = ["| network | instruction set | Octet ms | rival | its ms | how it runs | times faster | required | |",
             "|---|---|---|---|---|---|---|---|---|"]
    for network, isa, octet, rival, ratio, required in rows_of(report):
        times = rival["times_as_long"]
        state = "" if not required else "**missed**" if ratio < required else "holds"
        lines.append(f"| {TITLES.get(network, network)} | {SETS.get(isa, isa)} | {octet['min_ms']:.3f} ({octet['median_ms']:.3f}) | {rival['name']} | "
                     f"{rival['min_ms']:.3f} ({rival['median_ms']:.3f}) | {rival['how']} | **{ratio_text(ratio, required)}** "
                     f"({min(times):.2f}-{max(times):.2f}) | {required or '-'} | {state} |")
    return lines


def accuracy_table(report):
    products = ("octet", "openvino", "onnxruntime")
    lines = ["| network | Octet dB | OpenVINO (NNCF) dB | ONNX Runtime dB |", "|---|---|---|---|"]
    for network, found in report["networks"].items():
        cells = [found["accuracy"][p] for p in products]
        lines.append(f"| {TITLES.get(network, network)} | " + " | ".join(f"{c['sqnr_db']:.1f} ({c['differences_db']:.1f})" for c in cells) + " |")
    return lines


def markdown(report):
    return "\n".join([
        f"{report['cpu']}, {report['cpus']} CPUs, {report['date']}, commit {report['commit']}, {report['windows']} windows of at least "
        f"{report['window_ms']} ms, {report['threads']} threads, batch 1, load before the run {report['load_average_before']}; NNCF "
        f"{report['nncf']}, {report['pictures']} pictures.", "",
        "Minimum (median) in ms; times faster: the rival's time over Octet's, median of the windows (least-most).", "",
        *speed_table(report), "",
        f"Outputs against those of the FP32 file on {report['held_out']} other pictures, signal to noise in dB; in brackets without "
        "the mean output.", "", *accuracy_table(report)]) + "\n"


def update(document, text, report):
    kind = "product, newer" if set(report["networks"]) <= set(NEWER) else "product"
    begin, end = f"<!-- {kind}: begin (bench/product_table.py) -->", f"<!-- {kind}: end -->"
    before, rest = document.read_text().split(begin, 1)
    document.write_text(before + begin + "\n" + text + end + rest.split(end, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--update", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    report = json.loads(options.report.read_text())
    text = markdown(report)
    print(text)
    if options.update:
        update(options.update, text, report)
    if options.check and (failed := missed(report)):
        sys.exit("required and not reached: " + "; ".join(failed))


if __name__ == "__main__":
    main()
