// The bytes of a file that is no event, kept beside its dead letter.
#pragma once

namespace reprise::spool {

// Copies `from` to `to` in pieces, to their ends. 0, or an errno.
int copy_bytes(int from, int to);
// Whether two open files hold the same bytes. 0 or 1, or minus an errno.
int same_bytes(int one, int other);

}  // namespace reprise::spool
