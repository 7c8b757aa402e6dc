package ordertest

import "testing"

func TestABudgetIsNeitherExceededNorTooLarge(t *testing.T) {
	for _, tt := range []struct {
		got           uint64 // of 100
		release, want string
	}{
		{75, "go1.26.8", ""},
		{1, "go1.27.0", ""},
		{125, "go1.27.0", ""},
		{74, "go1.26.8", "so lower its budget"},
		{101, "go1.26.8", "over its budget"},
		{126, "go1.27.0", "over its budget"},
	} {
		if got := compare(tt.got, 100, tt.release); got != tt.want {
			t.Errorf("%d of 100 with %s: got %q, want %q", tt.got, tt.release, got, tt.want)
		}
	}
}
