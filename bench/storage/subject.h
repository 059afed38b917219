// The storage that is measured: what `reprise serve` uses, opened with the same options.
// The one place to change when the product's storage changes.
#pragma once

#include <memory>
#include <string>

#include "storage/storage.h"

namespace reprise::bench {

// Throws LoadError.
std::unique_ptr<storage::Storage> open_subject(
    const std::string& folder, storage::Durability commits = storage::Durability::synced);

}  // namespace reprise::bench
