"""PNG, JPEG, GIF and WebP: decoded to the last row of every frame."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.formats.judging import examined, verdict

INVALID, HOLLOW = "artifact_format_invalid", "artifact_placeholder_output"
UNSAFE = "artifact_unsafe"
FORMATS = {"png": "PNG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP"}
ANIMATED = ("png", "gif", "webp")


def photo(width: int = 320, height: int = 240, seed: int = 1) -> Image.Image:
    small = random.Random(seed).randbytes(width // 8 * (height // 8) * 3)
    return Image.frombytes("RGB", (width // 8, height // 8), small).resize((width, height))


def encoded(picture: Image.Image, format: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, FORMATS[format], **options)
    return stream.getvalue()


def animated(format: str) -> bytes:
    frames = [photo(seed=seed) for seed in (1, 2, 3)]
    return encoded(frames[0], format, save_all=True, append_images=frames[1:])


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def header(data: bytes, width: int, height: int) -> bytes:
    """Return a PNG with another size in its header, the checksum mended."""
    return data[:8] + chunk(b"IHDR", struct.pack(">II", width, height) + data[24:29]) + data[33:]


@pytest.mark.parametrize("format", FORMATS)
class TestEveryPicture:
    def test_holds_and_has_a_size(self, format: str) -> None:
        evidence = examined(format, encoded(photo(), format))
        assert evidence.ok
        assert (evidence.facts["width"], evidence.facts["height"]) == (320, 240)

    @pytest.mark.parametrize("share", [30, 50, 90, 99])
    def test_is_cut_wherever_it_is_cut(self, format: str, share: int) -> None:
        data = encoded(photo(), format)
        assert verdict(format, data[: len(data) * share // 100]).startswith(INVALID)

    def test_is_hollow_in_one_colour(self, format: str) -> None:
        data = encoded(Image.new("RGB", (64, 64), "white"), format)
        assert verdict(format, data) == f"{HOLLOW}/flat"

    def test_is_hollow_as_one_pixel(self, format: str) -> None:
        data = encoded(Image.new("RGB", (1, 1), "red"), format)
        assert verdict(format, data) == f"{HOLLOW}/one_pixel"

    def test_may_be_small_and_flat_as_an_icon(self, format: str) -> None:
        data = encoded(Image.new("RGB", (1, 1), "red"), format)
        assert verdict(format, data, purpose="icon") == "ok"

    def test_is_refused_under_another_name(self, format: str) -> None:
        for other in FORMATS:
            if other != format:
                mismatch = verdict(format, encoded(photo(), other))
                assert mismatch == f"{INVALID}/format_mismatch"

    def test_is_refused_as_text(self, format: str) -> None:
        import base64

        data = base64.b64encode(encoded(photo(), format))
        assert verdict(format, data) == f"{INVALID}/is_base64"
        assert verdict(format, b"data:image/png;base64," + data) == f"{INVALID}/is_base64"
        assert verdict(format, b"A chart of pallets.") == f"{INVALID}/format_mismatch"
        assert verdict(format, b"<html><body>404</body></html>") == f"{INVALID}/is_html"

    def test_must_have_the_size_that_the_contract_names(self, format: str) -> None:
        data = encoded(photo(), format)
        assert verdict(format, data, min_width=320, height=240) == "ok"
        assert verdict(format, data, width=100).startswith("artifact_contract_unmet")


@pytest.mark.parametrize("format", ANIMATED)
class TestAnAnimation:
    def test_holds_with_all_of_its_frames(self, format: str) -> None:
        evidence = examined(format, animated(format))
        assert evidence.ok
        assert evidence.facts["frames"] == 3

    def test_is_cut_when_its_last_frame_is(self, format: str) -> None:
        assert verdict(format, animated(format)[:-200]).startswith(INVALID)


class TestPng:
    def test_is_damaged_when_a_byte_flips(self) -> None:
        data = bytearray(encoded(photo(), "png"))
        data[len(data) // 2] ^= 1
        assert verdict("png", bytes(data)) == f"{INVALID}/crc_mismatch"

    def test_is_cut_when_rows_are_missing_in_good_order(self) -> None:
        data = encoded(photo(), "png")
        rows = zlib.compress(b"\0" * (320 * 3 + 1) * 120)
        half = data[:33] + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
        assert verdict("png", half) == f"{INVALID}/truncated"

    def test_is_unsafe_with_more_pixels_than_its_bytes_can_hold(self) -> None:
        assert verdict("png", header(encoded(photo(), "png"), 120_000, 120_000)) == (
            f"{UNSAFE}/decompression_bomb"
        )

    def test_is_unsafe_with_a_text_that_inflates_without_end(self) -> None:
        data = encoded(photo(), "png")
        text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * (64 << 20)))
        assert verdict("png", data[:33] + text + data[33:]) == f"{UNSAFE}/decompression_bomb"

    @pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "P", "RGBA"])
    def test_holds_in_every_mode(self, mode: str) -> None:
        if mode == "I;16":
            picture = Image.frombytes(mode, (64, 64), bytes(range(256)) * 32)
        else:
            picture = photo().convert(mode)
        assert verdict("png", encoded(picture, "png")) == "ok"

    def test_is_flat_when_everything_is_transparent(self) -> None:
        assert verdict("png", encoded(Image.new("RGBA", (64, 64), (9, 9, 9, 0)), "png")) == (
            f"{HOLLOW}/flat"
        )

    def test_is_not_flat_with_one_thin_line(self) -> None:
        picture = Image.new("RGB", (640, 480), "white")
        ImageDraw.Draw(picture).line((10, 400, 630, 60), fill="navy")
        assert verdict("png", encoded(picture, "png")) == "ok"

    def test_is_named_when_line_ends_were_changed_in_it(self) -> None:
        data = encoded(photo(), "png").replace(b"\r\n", b"\n")
        assert verdict("png", data) == f"{INVALID}/text_transport"

    def test_is_no_animation_when_a_frame_is_missing(self) -> None:
        data = animated("png")
        at = data.rfind(b"fcTL") - 4
        assert verdict("png", data[:at] + chunk(b"IEND", b"")).startswith(INVALID)


class TestJpeg:
    @pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
    @pytest.mark.parametrize("tail", [b"\xff\xd9", b"\0" * 9000 + b"\xff\xd9"])
    def test_is_cut_when_an_end_mark_hides_it(self, options: dict[str, Any], tail: bytes) -> None:
        data = encoded(photo(640, 480), "jpeg", quality=90, **options)
        assert verdict("jpeg", data[: len(data) // 2] + tail) == f"{INVALID}/truncated"

    @pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
    def test_holds_in_every_mode(self, mode: str) -> None:
        assert verdict("jpeg", encoded(photo().convert(mode), "jpeg")) == "ok"

    @pytest.mark.parametrize("colour", ["white", "black", (128, 128, 128)])
    def test_may_end_in_one_colour(self, colour: Any) -> None:
        picture = photo(640, 480)
        ImageDraw.Draw(picture).rectangle((0, 200, 640, 480), fill=colour)
        assert verdict("jpeg", encoded(picture, "jpeg")) == "ok"
        assert verdict("jpeg", encoded(picture, "jpeg", progressive=True)) == "ok"

    def test_may_have_bytes_behind_its_end(self) -> None:
        assert verdict("jpeg", encoded(photo(), "jpeg") + b"\0" * 5000) == "ok"

    def test_is_unsafe_with_more_pixels_than_its_bytes_can_hold(self) -> None:
        data = bytearray(encoded(photo(), "jpeg"))
        at = data.index(b"\xff\xc0")
        data[at + 5 : at + 9] = struct.pack(">HH", 65_000, 65_000)
        assert verdict("jpeg", bytes(data)) == f"{UNSAFE}/decompression_bomb"
