// The byte-level alphabet of GPT-2 style vocabularies: each of the 256 bytes stands as one printable character.
//
// Bytes 33-126, 161-172 and 174-255 stand for themselves as code points; the 68 others, ascending, are U+0100 to
// U+0143. (Radford et al. 2019, the "bytes_to_unicode" table.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// The bytes that a piece stands for, or nothing if it holds a character outside the alphabet.
std::optional<std::string> bytes_of_piece(std::string_view piece);
// The inverse: the piece of some bytes.
std::string piece_of_bytes(std::string_view bytes);

}  // namespace troupe
