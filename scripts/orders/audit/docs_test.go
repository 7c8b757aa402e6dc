package audit_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/orders/audit"
)

func TestTheGuideExplainsEveryClass(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+_\\w+)` \\|").FindAllStringSubmatch(string(guide), -1) {
		got = append(got, match[1])
	}
	for _, c := range audit.Classes() {
		want = append(want, string(c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-code +guide):\n%s", diff)
	}
}
