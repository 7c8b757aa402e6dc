package browser_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system/systemtest"
)

const repository = "../../.."

type local struct {
	url   string            // of the live page, without a path
	env   map[string]string // that local up writes for its operator
	store *dynamodb.Store
	queue *sqs.Client
}

// startLocal compiles and starts `local up` at free ports, and interrupts it with the
// test. Everything that it sends to the page is searched for personal data and keys.
func startLocal(t *testing.T) *local {
	t.Helper()
	dynamodbtest.Locate(t)
	dir := systemtest.Folder(t, repository)
	binary := filepath.Join(t.TempDir(), "local")
	program := lambdatest.Program{Package: "./scripts/local", Root: repository}
	systemtest.Must(t, program.Build(t.Context(), binary))
	s := &local{url: startUp(t, binary, dir)}
	s.env = readEnv(t, filepath.Join(dir, "build/up/env"))
	config := dynamodbtest.Config(s.env["AWS_ENDPOINT_URL_DYNAMODB"], func(name string) string { return s.env[name] })
	s.store = dynamodb.New(config, s.env["ORDERS_TABLE"])
	config.BaseEndpoint = aws.String(s.env["AWS_ENDPOINT_URL_SQS"])
	s.queue = sqs.NewFromConfig(config)
	s.searchFeed(t)
	return s
}

// startUp starts the program and returns the first address that it prints, which is the
// page's, once it has printed everything.
func startUp(t *testing.T, binary, dir string) (page string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "up", "--dynamodb-port=0",
		"--sqs-port=0", "--stripe-port=0", "--api-port=0", "--console-port=0")
	cmd.Dir, cmd.Stderr = dir, t.Output()
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	systemtest.Must(t, err)
	lines := bufio.NewScanner(stdout)
	var draining sync.WaitGroup
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // if it has ended, Wait returns why
		draining.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("local up: %v", err)
		}
	})
	var printed strings.Builder
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C ends everything") {
			draining.Go(func() { _, _ = io.Copy(io.Discard, stdout) }) // it prints each event, and waits for a reader
			return regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed.String())
		}
	}
	t.Fatalf("local up ended, after it had printed\n%s", printed.String())
	return ""
}

func readEnv(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	systemtest.Must(t, err)
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[strings.TrimPrefix(name, "export ")] = value
		}
	}
	return env
}

func (s *local) status(t *testing.T, id string) string {
	t.Helper()
	record, err := s.store.Load(t.Context(), order.ID(id))
	if !errors.Is(err, order.ErrNotFound) {
		systemtest.Must(t, err)
	}
	return string(record.Status)
}

// charges asks Stripe how often each order was charged. It returns Stripe's error: an
// attack may make Stripe unavailable.
func (s *local) charges(t *testing.T) (map[string]int, error) {
	t.Helper()
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: aws.String(s.env["STRIPE_API_BASE"]), LeveledLogger: &stripe.LeveledLogger{},
	})
	client := paymentintent.Client{B: backend, Key: s.env["STRIPE_SECRET_KEY"]}
	params := &stripe.PaymentIntentListParams{ListParams: stripe.ListParams{
		Context: t.Context(), Limit: aws.Int64(100),
	}}
	charges, intents := map[string]int{}, client.List(params)
	for intents.Next() {
		if intent := intents.PaymentIntent(); intent.Status == stripe.PaymentIntentStatusSucceeded {
			charges[intent.Metadata["orderId"]]++
		}
	}
	return charges, intents.Err()
}

func (s *local) deadLetters(t *testing.T) int {
	t.Helper()
	const number = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := s.queue.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(s.env["DEAD_LETTER_QUEUE_URL"]), AttributeNames: []types.QueueAttributeName{number},
	})
	systemtest.Must(t, err)
	n, err := strconv.Atoi(out.Attributes[string(number)])
	systemtest.Must(t, err)
	return n
}

func (s *local) get(t *testing.T, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	systemtest.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	systemtest.Must(t, err)
	return response
}

// private matches what must be nowhere in the page: the word of every personal value of
// its orders, and ids and keys of Stripe that belong to a person or an account.
var private = regexp.MustCompile(`canary|cus_|pm_|sk_test|whsec_`)

// searchFeed follows the page's feed until the test ends, and fails the test if it has
// personal data or a key.
func (s *local) searchFeed(t *testing.T) {
	t.Helper()
	feed := s.get(t, "/feed")
	lines := bufio.NewScanner(feed.Body)
	lines.Buffer(nil, 64<<20)
	var run sync.WaitGroup
	run.Go(func() {
		defer func() { _ = feed.Body.Close() }()
		for lines.Scan() {
			if found := private.FindString(lines.Text()); found != "" {
				t.Errorf("the feed has %q: %.500s", found, lines.Text())
				return
			}
		}
		if err := lines.Err(); err != nil && t.Context().Err() == nil {
			t.Errorf("the feed ended: %v", err)
		}
	})
	t.Cleanup(run.Wait)
}
