// give_back_free_memory: what the allocator keeps for later goes back to the system.
#pragma once

namespace reprise {

// Takes milliseconds when there is much. An allocator gives back by itself only where it is in use:
// what a burst has left with threads that sleep now would stay for as long as they do.
void give_back_free_memory();

}  // namespace reprise
