# One deployment of orderonce in the AWS account and region of the provider that the caller passes.
# functions.tf joins the parts, each of which has a file of its name. What parts share is in
# queue.tf, iam.tf and alarms.tf. pins.tf protects the state.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  # Prefix of the name of every resource.
  prefix = "${var.name}-${var.environment}"

  # The scope separates the idempotency keys, PaymentIntents and metrics of deployments.
  # It contains a hash of account and region, because deployments of the same name in
  # several of them may share a Stripe account.
  location = "${data.aws_caller_identity.current.account_id}/${data.aws_region.current.region}"
  scope    = coalesce(var.scope, "${local.prefix}-${substr(sha256(local.location), 0, 6)}")

  # What the access log of a public URL has. No body, header, path or query string: they may
  # contain customer data, a token or a signature.
  access_log = {
    requestId          = "$context.requestId"
    time               = "$context.requestTime"
    ip                 = "$context.identity.sourceIp"
    route              = "$context.routeKey"
    status             = "$context.status"
    responseLatency    = "$context.responseLatency"
    integrationStatus  = "$context.integrationStatus"
    integrationLatency = "$context.integrationLatency"
    integrationError   = "$context.integrationErrorMessage"
  }

  # Identifies the deployment that a state belongs to: see pins.tf.
  deployment = {
    prefix  = local.prefix
    scope   = local.scope
    account = data.aws_caller_identity.current.account_id
    region  = data.aws_region.current.region
  }
  # The scope of the order function in AWS, if there is one: see pins.tf.
  deployed_scopes = compact([for function in data.aws_lambda_function.deployed :
    try(function.environment[0].variables.SCOPE, null)
  ])
}

data "aws_lambda_functions" "all" {}

data "aws_lambda_function" "deployed" {
  count = contains(data.aws_lambda_functions.all.function_names, "${local.prefix}-order") ? 1 : 0

  function_name = "${local.prefix}-order"
}
