// Pages to check, and the reference: CRC-32C bit by bit, from its definition (RFC 3720, B.4).
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

using Page = std::vector<uint8_t>;
using Random = std::mt19937_64;

/// Returns the CRC-32C of `bytes`, computed one bit at a time.
inline uint32_t crc32c(const uint8_t *bytes, size_t length) {
  uint32_t state = 0xFFFFFFFFu;
  for (size_t i = 0; i < length; i++) {
    state ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) {
      state = (state >> 1) ^ ((state & 1) ? 0x82F63B78u : 0u);
    }
  }
  return ~state;
}

inline uint32_t crc32c(const Page &page) { return crc32c(page.data(), page.size()); }

/// Returns true if the reference gives the published values: the check value of the catalogue of
/// CRCs, and the examples of RFC 3720.
inline bool reference_is_right() {
  const Page zeros(32, 0), ones(32, 0xFF);
  Page rising(32);
  for (int i = 0; i < 32; i++) rising[i] = uint8_t(i);
  return crc32c(reinterpret_cast<const uint8_t *>("123456789"), 9) == 0xE3069283u &&
         crc32c(zeros) == 0x8A9136AAu && crc32c(ones) == 0x62A8AB43u &&
         crc32c(rising) == 0x46DD794Eu;
}

/// Makes pages: random ones, and those that wrong circuits tend to get right or wrong.
class Maker {
 public:
  Maker(Random &random, size_t bytes) : random_(random), last_(bytes, 0) {}

  Page next() {
    Page page(last_.size());
    switch (random_() % 12) {
      case 0: break;                                                   // zeros
      case 1: std::fill(page.begin(), page.end(), 0xFF); break;        // ones
      case 2: flip(page, random_() % (8 * page.size())); break;        // a single bit
      case 3: flip(page, 0); break;                                    // the first
      case 4: flip(page, 8 * page.size() - 1); break;                  // the last
      case 5: page = last_; flip(page, random_() % (8 * page.size())); break;
      case 6: page = last_; break;                                     // the same again
      case 7: for (size_t i = 0; i < page.size(); i++) page[i] = uint8_t(i); break;
      case 8: fill(page); std::memset(page.data(), 0xFF, 4); break;    // the state becomes 0
      case 9: fill(page); close(page); break;                          // ends in its own checksum
      default: fill(page);
    }
    return last_ = page;
  }

 private:
  static void flip(Page &page, size_t bit) { page[bit / 8] ^= uint8_t(1u << bit % 8); }
  void fill(Page &page) { for (auto &byte : page) byte = uint8_t(random_()); }
  static void close(Page &page) {
    const uint32_t checksum = crc32c(page.data(), page.size() - 4);
    for (int i = 0; i < 4; i++) page[page.size() - 4 + i] = uint8_t(checksum >> 8 * i);
  }

  Random &random_;
  Page last_;
};
