// ChunkedDecoder: takes the chunked transfer coding (RFC 9112, 7.1) off a request's body.
// As strict as the gate, and for the same reason: CR LF only, hexadecimal sizes only, sizes and
// trailers bounded. Chunk extensions and trailers are read and forgotten.
//
// Bytes may arrive split anywhere. Pure: no I/O, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::server {

class ChunkedDecoder {
 public:
  enum class Outcome : std::uint8_t {
    need_more,  // all of the input was used up
    data,       // `data` holds bytes of the body; call again with the rest
    done,       // the body ended; the rest is the next request's
    bad,        // not the chunked coding; nothing after it can be trusted
  };
  struct Step {
    Outcome outcome{};
    std::size_t used = 0;   // bytes of the input this step has dealt with
    std::string_view data;  // points into the input
  };

  // Call until it says need_more, done or bad.
  Step step(std::string_view input);

  // Bytes of the chunk under way that are still to come, once its size is known.
  std::uint64_t chunk_left() const { return state_ == State::data ? chunk_left_ : 0; }

 private:
  enum class State : std::uint8_t {
    size_start,  // the first digit of a chunk's size
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,  // the first byte of a trailer line, or of the empty one
    trailer_name,
    trailer,  // after its colon
    trailer_lf,
    end_lf,
    done,
    bad,
  };

  void take_data(std::string_view input, Step& step);
  void take_byte(char c);
  void take_size_byte(char c);
  void take_trailer_byte(char c);

  State state_ = State::size_start;
  std::uint64_t chunk_left_ = 0;
  unsigned size_digits_ = 0;
  std::size_t extra_bytes_ = 0;  // of extensions and trailers, over the whole body
};

}  // namespace reprise::server
