// std::set_union and std::unique over the six patterns of `speed merge`: least nanoseconds of
// five rounds an element.
// Built with -O3 by speed.py; the inputs are those that bench-kernels makes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static std::vector<int32_t> sorted(uint64_t elements, uint64_t pattern, uint64_t side) {
    uint64_t count = pattern == 1 && side == 1 ? elements / 64 : elements;
    uint64_t state = pattern == 5 ? 1 : side + 1;
    std::vector<int32_t> values;
    for (uint64_t index = 0; index < count; index++) {
        state = state * 6364136223846793005u + 1;
        uint64_t value = (state >> 33) % (1u << 30);
        if (pattern == 2) value %= 5000;
        if (pattern == 3) value += side * (1u << 30);
        if (pattern == 4) value = (index / 1000 * 2 + side) * 1000 + index % 1000;
        values.push_back(static_cast<int32_t>(value % (1u << 31)));
    }
    std::sort(values.begin(), values.end());
    return values;
}

int main(int, char **arguments) {
    uint64_t elements = strtoull(arguments[1], nullptr, 10);
    for (uint64_t pattern = 0; pattern < 6; pattern++) {
        auto left = sorted(elements, pattern, 0), right = sorted(elements, pattern, 1);
        std::vector<int32_t> out(left.size() + right.size());
        std::vector<double> times;
        for (int round = 0; round < 5; round++) {
            auto start = std::chrono::steady_clock::now();
            auto end = std::set_union(left.begin(), left.end(), right.begin(), right.end(),
                                      out.begin());
            end = std::unique(out.begin(), end);
            std::chrono::duration<double, std::nano> spent =
                std::chrono::steady_clock::now() - start;
            volatile int32_t last = end == out.begin() ? 0 : end[-1];
            (void)last;
            times.push_back(spent.count() / (left.size() + right.size()));
        }
        double least = *std::min_element(times.begin(), times.end());
        printf("%d %.4f\n", static_cast<int>(pattern), least);
    }
}
