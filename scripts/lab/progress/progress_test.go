package progress_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/progress"
)

func TestOneLineIsPrintedPerInterval(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	printLine := progress.Every(10*time.Second, &out, func() time.Time { return now })
	for second := range 25 {
		now = time.Unix(int64(second), 0)
		printLine("%d of 25", second)
	}
	if diff := cmp.Diff(out.String(), "10 of 25\n20 of 25\n"); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
