package setup_test

import (
	"bytes"
	"regexp"
	"testing"

	"orderonce/adapters/config"
	"orderonce/functions/internal/setup"
)

func TestAFunctionLogsItsVersionWhenItStarts(t *testing.T) {
	var out bytes.Buffer
	setup.Starting(&out)
	want := `^{"timestamp":"[\d-]+T[\d:.]+(Z|[+-][\d:]+)","level":"INFO","message":"function starting","version":"` +
		regexp.QuoteMeta(config.Version) + `"}\n$`
	if !regexp.MustCompile(want).Match(out.Bytes()) {
		t.Errorf("got %q, want %s", out.String(), want)
	}
}
