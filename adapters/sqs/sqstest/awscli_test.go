package sqstest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"orderonce/adapters/sqs/sqstest"
)

// TestTheAWSCLI sends a message with the AWS CLI that AWS_CLI names, for example
// Debian's. From 2.13 on it must be sent; an older version must print why it was not.
// `make awscli` runs it.
func TestTheAWSCLI(t *testing.T) {
	t.Parallel()
	cli := os.Getenv("AWS_CLI") //nolint:forbidigo // how to run it is its caller's choice
	if cli == "" {
		t.Skip("AWS_CLI names no AWS CLI: run make awscli")
	}
	var major, minor int
	version, err := exec.CommandContext(t.Context(), cli, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(version), "aws-cli/%d.%d.", &major, &minor); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	f := newServer(t, sqstest.Options{})
	send := exec.CommandContext(t.Context(), cli, "sqs", "send-message", "--endpoint-url", f.URL,
		"--queue-url", f.url, "--message-body", `{"orderId":"ORD-1"}`, "--region", sqstest.Region)
	send.Env = append(send.Environ(), "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend")
	var stderr bytes.Buffer
	send.Stderr = &stderr
	err = send.Run()
	sent := f.counts("orders").Sent
	t.Logf("%s: %d sent, %v\n%s", strings.TrimSpace(string(version)), sent, err, stderr.String())
	if major == 2 && minor >= 13 || major == 1 && minor >= 29 {
		if err != nil || sent != 1 {
			t.Errorf("got %d messages and %v, want one message", sent, err)
		}
		return
	}
	if want := "use AWS CLI 2.13 or later"; err == nil || sent != 0 || !strings.Contains(stderr.String(), want) {
		t.Errorf("got %d messages, %v and %q, want none and an error that says %q", sent, err, stderr.String(), want)
	}
}
