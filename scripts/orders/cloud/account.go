// Package cloud asks AWS and Stripe what the commands of the operator's tool need: it
// reads the environment of a deployment, finds the account, and says what to check
// after an error. It does not know the commands.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sdk "github.com/aws/aws-sdk-go-v2/config"

	"orderonce/adapters/config"
)

// Account selects which AWS account and endpoints a command uses, in the flags of the AWS
// CLI.
type Account struct {
	Profile     string `placeholder:"NAME" help:"The AWS profile, as in the AWS CLI: keys, SSO or a role. Default: AWS_PROFILE."`
	Region      string `placeholder:"NAME" help:"The AWS region. Default: AWS_REGION, or the profile's."`
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Send every AWS request there. Default: AWS_ENDPOINT_URL and the like."`
}

// longPoll is the longest time that SQS takes to answer a receive.
const longPoll = 20 * time.Second

var errNoRegion = errors.New("no AWS region: set --region, AWS_REGION or a profile that has one")

// Load finds region, credentials and endpoints as the AWS CLI does: flags, environment,
// profile, SSO, role.
func (a Account) Load(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTimeout(longPoll + answerTimeout)
	cfg, err := sdk.LoadDefaultConfig(ctx, sdk.WithHTTPClient(client),
		sdk.WithSharedConfigProfile(a.Profile), sdk.WithRegion(a.Region), sdk.WithBaseEndpoint(a.EndpointURL))
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return aws.Config{}, errNoRegion
	}
	cfg.HTTPClient = config.WholeBody(cfg.HTTPClient)
	if a.EndpointURL != "" { // the SDK prefers AWS_ENDPOINT_URL_SQS and the like to the flag
		cfg.BaseEndpoint, cfg.ConfigSources = &a.EndpointURL, nil
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, fmt.Errorf("AWS credentials: %w\n%s", err, howToLogIn())
	}
	return cfg, nil
}

func howToLogIn() string {
	return strings.Join([]string{
		"log in: aws sso login, aws configure, --profile NAME or AWS_ACCESS_KEY_ID",
		"the system that `make up` runs: . ./build/up/env",
	}, "; ")
}
