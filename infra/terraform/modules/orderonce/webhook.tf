# The endpoint of Stripe's webhooks: an HTTP API with one route, which invokes
# functions/webhook. Its URL is public. The function accepts only requests that Stripe
# signed with the endpoint's secret (secrets.tf).

locals {
  webhook = {
    enabled = var.create_webhook
    function = {
      description  = "Settles orders after Stripe's webhooks"
      timeout      = 15 # two calls of STRIPE_TIMEOUT and the table's; an HTTP API waits for 30 s
      memory_size  = var.webhook_memory_size
      reserved     = var.webhook_reserved_concurrency
      kms_services = ["dynamodb", "secretsmanager"]
    }
    essential = [
      "webhook-failing", "webhook-signatures", "webhook-mismatch", "webhook-row-missing", "dispute",
    ]
    alarms = {
      # Anybody can send unsigned requests, which get a 4xx: they are no part of the
      # whole, or a stranger could lower the share below the threshold.  Requests may be
      # rare, and Stripe repeats one after minutes, then after hours. So three periods
      # within an hour raise the alarm, not three in a row.
      webhook-failing = {
        metrics = {
          errors   = "api/webhook 5xx Sum"
          requests = "api/webhook Count Sum"
          rejected = "api/webhook 4xx Sum"
        }
        expression  = "100 * errors / (requests - FILL(rejected, 0))", above = 25, periods = [3, 12]
        description = <<-EOT
        A quarter of the signed webhook requests got a 5xx in three five-minute periods of an hour: the
        function crashes, times out, is throttled or does not start, or cannot reach DynamoDB or Stripe. Stripe
        sends the events again for three days: ${local.runbook}, "The webhook fails".
      EOT
      }
      webhook-unavailable = {
        metrics = {
          failed   = "app Webhooks Sum Result=unavailable"
          requests = "api/webhook Count Sum"
          rejected = "api/webhook 4xx Sum"
        }
        expression  = "100 * failed / (requests - FILL(rejected, 0))", above = 25, periods = [3, 12]
        description = <<-EOT
        A quarter of the signed webhook requests failed at DynamoDB or Stripe in three five-minute periods of
        an hour. No event is lost. Read error in the function's log: ${local.runbook}, "The webhook fails".
      EOT
      }
      # Above 80 percent of what the API accepts, Stripe's requests are among those that
      # get a 429. Accepted requests alone reach the threshold, whether or not Count has
      # the others.
      webhook-flooded = {
        metric      = "api/webhook Count Sum", above = 0.8 * 300 * var.webhook_rate_limit, periods = [3, 12]
        description = <<-EOT
        The webhook's API gets nearly as many requests as it accepts, so Stripe's may be answered 429 and are
        sent again for three days. Reconcile settles orders meanwhile. New disputes stay hidden: look at them
        in Stripe's Dashboard. ${local.runbook}, "The webhook is flooded".
      EOT
      }
      # The URL is public, so a few unsigned requests are normal. With a wrong secret all
      # events fail, several per order, and Stripe repeats them: more than five in each of
      # two periods. The threshold is a number and not a share, because scanners may send
      # most of the requests of a quiet shop.
      webhook-signatures = {
        metric      = "app Webhooks Sum Result=invalid_signature", above = 5, periods = [2, 12]
        description = <<-EOT
        Webhook requests have an invalid signature. If Stripe sends them, the stored secret is not that of the
        endpoint, and no order is settled by webhooks. Otherwise somebody forges requests, which are rejected:
        ${local.runbook}, "Webhook signatures are rejected".
      EOT
      }
      webhook-mismatch = { metric = "app Webhooks Sum Result=mismatch", description = <<-EOT
        A webhook's PaymentIntent and the order's row disagree: another PaymentIntent may have taken money, or
        two deployments may share a scope. Compare the two before anything else: ${local.runbook}, "A webhook
        does not match its row".
      EOT
      }
      webhook-row-missing = { metric = "app Webhooks Sum Result=row_missing", description = <<-EOT
        A webhook of this scope names an order that has no row: the row was lost or deleted, so the order
        could be charged again. ${local.runbook}, "A webhook has no row".
      EOT
      }
      dispute = { metric = "app Disputed Sum", description = <<-EOT
        A customer disputed a charge. Stripe asks for evidence before a deadline, after which the money is
        lost: ${local.runbook}, "An order is disputed".
      EOT
      }
    }
  }

  webhook_environment = !var.create_webhook ? null : merge({
    ORDERS_TABLE       = aws_dynamodb_table.orders.name
    SCOPE              = local.scope
    STRIPE_SECRET_ARN  = local.stripe_keys.webhook.arn
    STRIPE_TIMEOUT     = "5s" # a thin event needs two calls
    WEBHOOK_SECRET_ARN = aws_secretsmanager_secret.webhook[0].arn
  }, local.stock_environment)

  webhook_statements = !var.create_webhook ? null : merge({
    LoadOrders = { Action = ["dynamodb:Query", "dynamodb:GetItem"], Resource = aws_dynamodb_table.orders.arn }
    SettleOrders = {
      Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
      Resource = aws_dynamodb_table.orders.arn
    }
    ReadWebhookSecret = {
      Action   = "secretsmanager:GetSecretValue"
      Resource = aws_secretsmanager_secret.webhook[0].arn
    }
  }, local.stock_statements)
}

resource "aws_apigatewayv2_api" "webhook" {
  count = var.create_webhook ? 1 : 0

  name          = "${local.prefix}-webhook"
  description   = "Endpoint of Stripe's webhooks of ${local.prefix}"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id                 = aws_apigatewayv2_api.webhook[0].id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST" # of the call to Lambda
  integration_uri        = aws_lambda_alias.live["webhook"].invoke_arn
  payload_format_version = "2.0" # adapters/apigateway reads no other
}

# The only route: the API answers 404 to every other method and path.
resource "aws_apigatewayv2_route" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id    = aws_apigatewayv2_api.webhook[0].id
  route_key = "POST /stripe/webhook"
  target    = "integrations/${aws_apigatewayv2_integration.webhook[0].id}"
}

resource "aws_apigatewayv2_stage" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id      = aws_apigatewayv2_api.webhook[0].id
  name        = "$default" # a URL without a stage
  auto_deploy = true

  # Anybody can send requests, so the API rejects a flood before it invokes the function.
  default_route_settings {
    throttling_burst_limit = var.webhook_burst_limit
    throttling_rate_limit  = var.webhook_rate_limit
  }

  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.webhook_access[0].arn
    format          = jsonencode(local.access_log)
  }
}

# API Gateway adds the log group to a resource policy of CloudWatch Logs, whose size is
# limited. A statement for this prefix covers all such groups once the policy is long
# (CloudWatch Logs user guide, "Log group resource policy size limit considerations").
resource "aws_cloudwatch_log_group" "webhook_access" {
  count = var.create_webhook ? 1 : 0

  name              = "/aws/vendedlogs/${local.prefix}-webhook-access"
  retention_in_days = var.log_retention_days
}

# Only this route of this API may invoke the function.
resource "aws_lambda_permission" "webhook" {
  count = var.create_webhook ? 1 : 0

  statement_id  = "StripeWebhook"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_alias.live["webhook"].function_name
  qualifier     = aws_lambda_alias.live["webhook"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.webhook[0].execution_arn}/$default/POST/stripe/webhook"
}
