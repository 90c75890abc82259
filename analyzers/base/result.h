// Result<T>: a value or an Error. Ignoring one is a compiler warning.
//
//   Result<Capture> capture = read_capture(path);
//   if (!capture) {
//       return fail(std::move(capture).error().context("reading the capture"));
//   }
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "analyzers/base/error.h"

namespace ringside {

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  public:
    using tl::expected<T, Error>::expected;
    // What map() and and_then() return: the base type.
    Result(tl::expected<T, Error> base) : tl::expected<T, Error>(std::move(base)) {}
};

// A function that returns nothing but may fail.
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string what) {
    return fail(Error(code, std::move(what)));
}

}  // namespace ringside
