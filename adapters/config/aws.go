package config

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/internal/awsretry"
)

// Service is the name of an AWS service in AWS_ENDPOINT_URL_<SERVICE>.
type Service string

// The services that have a client.
const (
	DynamoDB       Service = "DYNAMODB"
	EventBridge    Service = "EVENTBRIDGE"
	SQS            Service = "SQS"
	SecretsManager Service = "SECRETS_MANAGER"
	SES            Service = "SESV2"
)

// AWS is the region and the credentials, which Lambda sets, and the endpoints, which an
// operator may set. Embed or nest it in the struct for [Read].
//
// Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html.
type AWS struct {
	Region                 string `env:"AWS_REGION,notEmpty" want:"a region such as eu-west-1"`
	AccessKeyID            string `env:"AWS_ACCESS_KEY_ID,notEmpty" want:"an access key id"`
	SecretAccessKey        Secret `env:"AWS_SECRET_ACCESS_KEY,notEmpty"`
	SessionToken           Secret `env:"AWS_SESSION_TOKEN"`
	Endpoint               string `env:"AWS_ENDPOINT_URL"`
	DynamoDBEndpoint       string `env:"AWS_ENDPOINT_URL_DYNAMODB"`
	EventBridgeEndpoint    string `env:"AWS_ENDPOINT_URL_EVENTBRIDGE"`
	SQSEndpoint            string `env:"AWS_ENDPOINT_URL_SQS"`
	SecretsManagerEndpoint string `env:"AWS_ENDPOINT_URL_SECRETS_MANAGER"`
	SESEndpoint            string `env:"AWS_ENDPOINT_URL_SESV2"`
	IgnoreEndpoints        bool   `env:"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"`
}

// Config returns the configuration of a service's client. The SDK's LoadDefaultConfig
// would return the same, but it depends on profiles, SSO and STS, which cost a cold start
// about 6 ms and 2 MB.
func (a AWS) Config(service Service, client aws.HTTPClient) aws.Config {
	cfg := aws.Config{
		Region: a.Region, HTTPClient: WholeBody(client), Retryer: retryer(service),
		// They never change within a process: Lambda ends an execution environment before
		// they expire.
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: a.AccessKeyID, SecretAccessKey: a.SecretAccessKey.Reveal(),
				SessionToken: a.SessionToken.Reveal(), Source: "Lambda environment",
			}, nil
		}),
	}
	if endpoint := a.endpoint(service); endpoint != "" {
		cfg.BaseEndpoint = &endpoint
	}
	return cfg
}

// endpoint returns the service's own endpoint, or else the general one, as every AWS SDK.
func (a AWS) endpoint(service Service) string {
	if a.IgnoreEndpoints {
		return ""
	}
	return cmp.Or(map[Service]string{
		DynamoDB:       a.DynamoDBEndpoint,
		EventBridge:    a.EventBridgeEndpoint,
		SQS:            a.SQSEndpoint,
		SecretsManager: a.SecretsManagerEndpoint,
		SES:            a.SESEndpoint,
	}[service], a.Endpoint)
}

// retryer returns the retryer of a service's client: three attempts with short delays,
// which need only outlive a lost connection or a throttled request. A call also ends with
// its context.
//
// One attempt takes at most 1 s to connect, 2 s for the TLS handshake (NewTransport) and
// AWSResponseTimeout, 2 s, for the response: 5 s, or 2 s on an idle connection. If
// nothing arrives, SQS and EventBridge take 3 * 2 s + 0.3 s = 6.3 s; the context of SQS
// ends earlier, after 3/4 of ANSWER_TIME. Secrets Manager takes 3 * 5 s + 0.6 s = 15.6 s
// of a cold start, which Lambda ends after 10 s and repeats within the function's
// time-out of 30 s.
//
// A repeated request whose response was lost may give a bus its events twice. An entry
// that the bus refuses is not retried here.
func retryer(service Service) func() aws.Retryer {
	firstDelay, ok := map[Service]time.Duration{ // package dynamodb has its own retryer, package ses none
		SQS: 100 * time.Millisecond, EventBridge: 100 * time.Millisecond, SecretsManager: 200 * time.Millisecond,
	}[service]
	if !ok {
		return nil
	}
	return func() aws.Retryer { return awsretry.New(3, firstDelay) }
}
