package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/credits"
)

var errCapacity = errors.New("--capacity is not such as vcpu=16,ramGb=64, with whole numbers from 1 on")

// capacity reads what runs may use at once; what is not named is the
// machine's.
func (s *settings) capacity() (size credits.Size, err error) {
	if s.Capacity == "" {
		return size, nil
	}
	for part := range strings.SplitSeq(s.Capacity, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<20 {
			return credits.Size{}, errCapacity
		}
		switch name {
		case "vcpu":
			size.VCPU = n
		case "ramGb":
			size.RAMGB = n
		default:
			return credits.Size{}, errCapacity
		}
	}
	return size, nil
}
