#!/usr/bin/env python3
"""Reads TFRecord files of tf.train.Examples without any package, checks both checksums of every record, and prints each
Example as a line of JSON, its keys sorted. Bytes that are no text become hexadecimal digits.

    read_tfrecords.py FILE ...
"""
import json
import struct
import sys


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked_crc32c(data[at : at + 8]), f"checksum of the length at byte {at}"
        payload = data[at + 12 : at + 12 + length]
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked_crc32c(payload), f"checksum of the record at byte {at}"
        yield payload
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            assert kind == 2, f"wire type {kind}"
            length, at = varint(data, at)
            value = data[at : at + length]
            at += length
        yield key >> 3, value


def values(feature):
    out = []
    for kind, items in fields(feature):
        for number, item in fields(items):
            assert number == 1
            if kind == 1:
                try:
                    out.append(item.decode())
                except UnicodeDecodeError:
                    out.append(item.hex())
            elif kind == 2:
                out += struct.unpack(f"<{len(item) // 4}f", item)
            else:
                at = 0
                while at < len(item):
                    value, at = varint(item, at)
                    out.append(value - (1 << 64) if value >= 1 << 63 else value)
    return out


def main():
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            for record in records(file.read()):
                example = {}
                for _, features in fields(record):
                    for _, entry in fields(features):
                        parts = dict(fields(entry))
                        example[parts[1].decode()] = values(parts[2])
                print(json.dumps(example, sort_keys=True))


if __name__ == "__main__":
    main()
