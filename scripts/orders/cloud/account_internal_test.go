package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"orderonce/adapters/stripe/stripetest/rigtest"
)

// isolate gives the test an environment and home folder of its own, in which one profile
// exists.
func isolate(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_CA_BUNDLE",
	} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "config")
	rigtest.Must(t, os.WriteFile(file, []byte("[profile shop]\nregion = eu-west-3\n"+
		"aws_access_key_id = shop\naws_secret_access_key = canary\n"), 0o600))
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file+".none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func TestTheAccountIsFoundAsByTheAWSCLI(t *testing.T) {
	for claim, tt := range map[string]struct {
		flags        Account
		environ      map[string]string
		region, keys string
		err          string
	}{
		"a profile by its flag":         {flags: Account{Profile: "shop"}, region: "eu-west-3", keys: "shop"},
		"a profile of the environment":  {environ: map[string]string{"AWS_PROFILE": "shop"}, region: "eu-west-3", keys: "shop"},
		"a flag beats the profile":      {flags: Account{Profile: "shop", Region: "us-east-1"}, region: "us-east-1", keys: "shop"},
		"keys of the environment":       {environ: keys("eu-west-1"), region: "eu-west-1", keys: "pretend"},
		"a flag beats the environment":  {flags: Account{Profile: "shop"}, environ: keys("eu-west-1"), region: "eu-west-1", keys: "shop"},
		"no region":                     {environ: keys(""), err: "no AWS region: set --region, AWS_REGION"},
		"no credentials":                {flags: Account{Region: "eu-west-1"}, err: "AWS credentials: "},
		"a profile that does not exist": {flags: Account{Profile: "none"}, err: "failed to get shared config profile, none"},
	} {
		t.Run(claim, func(t *testing.T) {
			isolate(t)
			for name, value := range tt.environ {
				t.Setenv(name, value)
			}
			cfg, err := tt.flags.Load(t.Context())
			if err != nil || tt.err != "" {
				if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want %q", err, tt.err)
				}
				return
			}
			found, err := cfg.Credentials.Retrieve(t.Context())
			rigtest.Must(t, err)
			if _, plain := cfg.HTTPClient.(*awshttp.BuildableClient); plain {
				t.Error("a response that arrives early is lost, with the messages that it hides: want config.WholeBody")
			}
			if cfg.Region != tt.region || found.AccessKeyID != tt.keys {
				t.Errorf("got region %s and keys %s, want %s and %s", cfg.Region, found.AccessKeyID, tt.region, tt.keys)
			}
		})
	}
}

func keys(region string) map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": "pretend", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_REGION": region,
	}
}

func TestTheEndpointFlagBeatsTheEnvironment(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
	for flag, want := range map[string]string{"": "http://127.0.0.1:1", "http://127.0.0.1:2": "http://127.0.0.1:2"} {
		cfg, err := Account{Profile: "shop", EndpointURL: flag}.Load(t.Context())
		rigtest.Must(t, err)
		if got := sdk.NewFromConfig(cfg).Options().BaseEndpoint; got == nil || *got != want {
			t.Errorf("with %q: got %v, want %s", flag, got, want)
		}
	}
}

func TestAnErrorOfAWSNamesWhatToCheckFirst(t *testing.T) {
	for code, want := range map[string]string{
		"ResourceNotFoundException": "the variables that end in _TABLE, --region and --profile must be those of the deployment",
		"QueueDoesNotExist":         "QUEUE_URL, --region and --profile must be those of the deployment",
		"AccessDeniedException":     "lacks this permission",
		"ExpiredTokenException":     "aws sso login",
	} {
		refused := fmt.Errorf("show order: %w", &smithy.GenericAPIError{Code: code, Message: "refused"})
		got := Hint(refused)
		if !errors.Is(got, refused) || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: got %q, want %q in it", code, got, want)
		}
	}
	if other := errors.New("other"); Hint(other).Error() != "other" || remedy(context.Canceled) != "" {
		t.Errorf("got %v, want another error as it is", Hint(other))
	}
}
