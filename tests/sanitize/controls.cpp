// Mistakes that the sanitizers must find: where they do not, what they say of the rest means
// nothing.
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

extern "C" {

int heap_overflow(int beyond) {
  std::vector<int> numbers(4, 1);
  return numbers.data()[4 + beyond];
}

int signed_overflow(int more) { return std::numeric_limits<int>::max() + more; }

int data_race(int times) {
  int shared = 0;
  const auto count = [&] {
    for (int i = 0; i < times; ++i) ++shared;
  };
  std::thread other(count);
  count();
  other.join();
  return shared;
}
}

int main(int argc, char** argv) {
  const char* mistake = argc > 1 ? argv[1] : "";
  int result = 0;
  if (std::strcmp(mistake, "heap_overflow") == 0) result = heap_overflow(argc - 2);
  if (std::strcmp(mistake, "signed_overflow") == 0) result = signed_overflow(argc - 1);
  if (std::strcmp(mistake, "data_race") == 0) result = data_race(1000 * argc);
  std::printf("%s was not found: %d\n", mistake, result);
}
