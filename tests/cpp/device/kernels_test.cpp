// The device's kernels, run instruction by instruction as PTX defines them: bitwise what the host's kernels give.
#include "palmette/device/device_kernels.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::device {
namespace {

using kernels::Element;
using kernels::Operator;

constexpr std::uint32_t canonical32 = 0x7fffffff;
constexpr std::uint64_t canonical64 = 0x7fffffffffffffff;

/// One thread of one kernel. Registers hold bits; memory is the host's.
class Thread {
  public:
    Thread(const std::string& kernel, std::uint64_t left, std::uint64_t right, std::uint64_t target,
           std::uint64_t count)
        : parameters_{{"left", left}, {"right", right}, {"target", target}, {"count", count}} {
        const std::string& all = kernels_ptx();
        const std::size_t at = all.find(".entry " + kernel + "(");
        EXPECT_NE(at, std::string::npos) << kernel;
        const std::size_t begin = all.find("{\n", at) + 2;
        std::istringstream lines(all.substr(begin, all.find("\n}\n", begin) - begin));
        for (std::string line; std::getline(lines, line);) {
            if (line[0] == '.') continue;
            if (line.back() == ':') {
                labels_[line.substr(0, line.size() - 1)] = code_.size();
                continue;
            }
            Line out;
            std::string word;
            std::istringstream words(line.substr(0, line.find(';')));
            words >> out.name;
            if (out.name[0] == '@') out.condition = out.name.substr(1), words >> out.name;
            while (words >> word) out.operands.push_back(word.back() == ',' ? word.substr(0, word.size() - 1) : word);
            code_.push_back(out);
        }
    }

    void run(unsigned thread, unsigned threads, unsigned block, unsigned blocks) {
        registers_ = {{"%tid.x", thread}, {"%ntid.x", threads}, {"%ctaid.x", block}, {"%nctaid.x", blocks}};
        for (std::size_t at = 0; at < code_.size();) {
            const Line& line = code_[at++];
            if (!line.condition.empty() && registers_.at(line.condition) == 0) continue;
            if (line.name == "ret") return;
            if (line.name == "bra")
                at = labels_.at(line.operands[0]);
            else
                step(line);
        }
    }

  private:
    struct Line {
        std::string condition, name;
        std::vector<std::string> operands;
    };

    std::uint64_t value(const std::string& operand) const {
        return operand[0] == '%' ? registers_.at(operand) : std::stoull(operand, nullptr, 0);
    }
    static std::uint64_t cut(std::uint64_t value, int bits) {
        return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
    }
    static float f32(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
    static std::uint64_t bits_of(float value) {
        return std::isnan(value) ? canonical32 : std::bit_cast<std::uint32_t>(value);
    }
    static std::uint64_t bits_of(double value) {
        return std::isnan(value) ? canonical64 : std::bit_cast<std::uint64_t>(value);
    }
    static double real(const std::string& type, std::uint64_t bits) {
        return type == "f64" ? std::bit_cast<double>(bits) : f32(bits);
    }

    void step(const Line& line) {
        const auto parts = base::split(line.name, '.');
        const std::string name(parts[0]), type(parts.back());
        const auto in = [&](std::size_t i) { return value(line.operands[i]); };
        const auto address = [&](std::size_t i) {
            const std::string& operand = line.operands[i];
            return operand.substr(1, operand.size() - 2);
        };
        std::uint64_t& out = registers_[line.operands[0]];
        const int bits = type == "pred" ? 1 : std::stoi(type.substr(1));
        if (line.name == "ld.param.u64") {
            out = parameters_.at(address(1));
        } else if (name == "ld") {
            std::uint64_t word = 0;
            std::memcpy(&word, reinterpret_cast<const void*>(value(address(1))), static_cast<std::size_t>(bits / 8));
            if (type[0] == 's' && bits < 64 && (word >> (bits - 1) & 1) != 0) word |= ~std::uint64_t{0} << bits;
            // Into a register of 32 or 64 bits.
            out = line.operands[0][1] == 'r' ? cut(word, 32) : word;
        } else if (name == "st") {
            registers_.erase(line.operands[0]);
            const std::uint64_t word = in(1);
            std::memcpy(reinterpret_cast<void*>(value(address(0))), &word, static_cast<std::size_t>(bits / 8));
        } else if (name == "mov" || name == "cvta") {
            out = in(1);
        } else if (line.name == "mul.wide.u32") {
            out = in(1) * in(2);
        } else if (line.name == "cvt.f32.f16") {
            out = bits_of(static_cast<float>(widened(in(1))));
        } else if (line.name == "cvt.rn.f16.f32") {
            out = narrowed(f32(in(1)));
        } else if (name == "cvt") {
            out = cut(in(1), std::stoi(std::string(parts[1]).substr(1)));
        } else if (name == "setp" && type[0] == 'f') {
            const double a = real(type, in(1)), b = real(type, in(2));
            out = parts[1] == "nan" ? std::isnan(a) || std::isnan(b) : parts[1] == "lt" ? a < b : a > b;
        } else if (line.name == "setp.ge.u64") {
            out = in(1) >= in(2);
        } else if (name == "selp") {
            out = cut(in(3) != 0 ? in(1) : in(2), bits);
        } else if (type == "f32") {
            out = bits_of(name == "add" ? f32(in(1)) + f32(in(2)) : f32(in(1)) * f32(in(2)));
        } else if (type == "f64") {
            const double a = std::bit_cast<double>(in(1)), b = std::bit_cast<double>(in(2));
            out = bits_of(name == "add" ? a + b : a * b);
        } else {
            out = cut(integer(name, type[0] == 's', bits, in(1), in(2)), bits);
        }
    }
    static std::uint64_t integer(const std::string& name, bool with_sign, int bits, std::uint64_t a, std::uint64_t b) {
        if (name == "add") return a + b;
        if (name == "mul") return a * b;
        if (name == "and") return a & b;
        if (name == "or") return a | b;
        if (name == "xor") return a ^ b;
        if (name == "shl") return a << b;
        if (name == "shr") return a >> b;
        // Moved so that they compare as unsigned ones do.
        const std::uint64_t moved = with_sign ? std::uint64_t{1} << (bits - 1) : 0;
        const bool less = cut(a ^ moved, bits) < cut(b ^ moved, bits);
        if (name == "min") return less ? a : b;
        if (name == "max") return less ? b : a;
        ADD_FAILURE() << name;
        return 0;
    }

    static double widened(std::uint64_t half) {
        const double sign = half & 0x8000 ? -1 : 1;
        const auto exponent = static_cast<int>(half >> 10 & 31);
        const auto fraction = static_cast<double>(half & 1023);
        if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
        return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
    }
    static std::uint64_t narrowed(float value) {
        if (std::isnan(value)) return 0x7fff;
        const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
        const double size = std::fabs(static_cast<double>(value));
        // Steps of the half precision numbers around it; nearbyint rounds to even.
        const int exponent = size == 0 ? -14 : std::max(-14, std::ilogb(size));
        const double rounded = std::ldexp(std::nearbyint(std::ldexp(size, 10 - exponent)), exponent - 10);
        if (rounded > 65504) return sign | 0x7c00;
        if (rounded < std::ldexp(1, -14)) return sign | static_cast<std::uint64_t>(std::ldexp(rounded, 24));
        const int of = std::ilogb(rounded);
        return sign | (static_cast<std::uint64_t>(of + 15) << 10 |
                       (static_cast<std::uint64_t>(std::ldexp(rounded, 10 - of)) & 1023));
    }

    std::map<std::string, std::uint64_t> parameters_, registers_;
    std::map<std::string, std::size_t> labels_;
    std::vector<Line> code_;
};

/// Random bits, and numbers at the edges of the formats.
std::vector<char> elements(std::mt19937_64& random, Element element, std::size_t count) {
    const std::size_t size = kernels::bytes_of(element).size;
    std::vector<char> out(size * count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t word = random();
        const bool real = element == Element::float32 || element == Element::float64 || size == 2;
        const int mantissa = element == Element::float64    ? 52
                             : element == Element::float32  ? 23
                             : element == Element::bfloat16 ? 7
                                                            : 10;
        const int bits = static_cast<int>(size) * 8;
        const std::uint64_t exponent = ((std::uint64_t{1} << (bits - 1 - mantissa)) - 1) << mantissa;
        switch (real ? random() % 8 : 7) {
            case 0:  // infinite
                word = exponent | (word & std::uint64_t{1} << (bits - 1));
                break;
            case 1:  // not a number
                word |= exponent | 1;
                break;
            case 2:  // subnormal, or zero
                word &= ~exponent;
                break;
            case 3:
                word = random() % 2 << (bits - 1);
                break;
            case 4:  // near one
                word = (word & ~exponent) | (((exponent >> 1) & exponent) ^ (random() % 2 << mantissa));
                break;
            default:
                break;
        }
        std::memcpy(out.data() + i * size, &word, size);
    }
    return out;
}

bool is_nan(Element element, const char* at) {
    if (element == Element::float32) return std::isnan(*reinterpret_cast<const float*>(at));
    if (element == Element::float64) return std::isnan(*reinterpret_cast<const double*>(at));
    std::uint16_t half = 0;
    std::memcpy(&half, at, 2);
    return (half & 0x7fff) > (element == Element::bfloat16 ? 0x7f80 : 0x7c00);
}

TEST(DeviceKernels, give_what_the_hosts_kernels_give) {
    std::mt19937_64 random(3);
    int kernels = 0;
    for (std::size_t o = 0; o < kernels::operator_count; ++o)
        for (std::size_t e = 0; e < kernels::element_count; ++e) {
            const auto op = static_cast<Operator>(o);
            const auto element = static_cast<Element>(e);
            if (!has_kernel(op, element)) continue;
            ++kernels;
            const kernels::Kernel host = kernels::kernel_for(op, element);
            ASSERT_TRUE(host);
            const std::size_t count = 700, size = kernels::bytes_of(element).size;
            const std::vector<char> left = elements(random, element, count), right = elements(random, element, count);
            std::vector<char> expected(left.size()), got(left.size(), 'x');
            host(left.data(), right.data(), expected.data(), count);
            Thread thread(kernel_name(op, element), reinterpret_cast<std::uint64_t>(left.data()),
                          reinterpret_cast<std::uint64_t>(right.data()), reinterpret_cast<std::uint64_t>(got.data()),
                          count);
            // Fewer threads than elements.
            for (unsigned block = 0; block < 3; ++block)
                for (unsigned t = 0; t < 32; ++t) thread.run(t, 32, block, 3);
            const bool real = element == Element::float32 || element == Element::float64 ||
                              element == Element::float16 || element == Element::bfloat16;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t at = i * size;
                // Of two that aren't numbers, which one a sum keeps is the compiler's choice.
                if (real && (op == Operator::sum || op == Operator::prod) && is_nan(element, left.data() + at) &&
                    is_nan(element, right.data() + at)) {
                    EXPECT_TRUE(is_nan(element, got.data() + at));
                    continue;
                }
                ASSERT_EQ(std::memcmp(got.data() + at, expected.data() + at, size), 0)
                    << kernel_name(op, element) << " of element " << i;
            }
        }
    // Of MPI_BYTE, too.
    EXPECT_EQ(kernels, 4 * 12 + 3 * 8 + 3);
}

/// PALMETTE_TEST_PTXAS, or that of the path; PyPI's nvidia-cuda-nvcc-cu12 has one for all of these.
TEST(DeviceKernels, assemble_for_old_and_new_devices) {
    const char* given = std::getenv("PALMETTE_TEST_PTXAS");
    const std::string ptxas = given ? given : "ptxas";
    if (std::system((ptxas + " --version >/dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "no ptxas";
    const std::string file = testing::TempDir() + "palmette_kernels_" + std::to_string(getpid()) + ".ptx";
    std::ofstream(file) << kernels_ptx();
    for (const char* arch : {"sm_70", "sm_90"})
        EXPECT_EQ(std::system((ptxas + " -arch " + arch + " -o /dev/null " + file).c_str()), 0) << arch;
    std::remove(file.c_str());
}

TEST(DeviceKernels, are_for_numbers_only) {
    EXPECT_FALSE(has_kernel(Operator::land, Element::int32));
    EXPECT_FALSE(has_kernel(Operator::band, Element::float32));
    EXPECT_FALSE(has_kernel(Operator::minloc, Element::int_int));
    EXPECT_FALSE(has_kernel(Operator::sum, Element::complex_float));
    EXPECT_FALSE(has_kernel(Operator::sum, Element::byte));
    EXPECT_EQ(kernel_name(Operator::bor, Element::byte), "palmette_bor_u8");
}

}  // namespace
}  // namespace palmette::device
